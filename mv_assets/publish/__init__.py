"""The view as an Iceberg or Delta table, for everybody who does not ask us: a projection of the map."""
