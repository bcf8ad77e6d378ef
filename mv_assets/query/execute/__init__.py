"""The parts of an answer, read and put together by Spark."""
