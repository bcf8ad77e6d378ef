"""What the project's methods come to: values for programs, which print for people and in notebooks."""
