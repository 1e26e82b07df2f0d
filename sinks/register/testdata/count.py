"""count.py S3 CATALOG NAMESPACE...: prints the rows of all tables, by pyiceberg and by DuckDB, as JSON."""
import importlib.util
import json
import pathlib
import sys

import duckdb
from pyiceberg.catalog import load_catalog

s3, catalog, spaces = sys.argv[1], sys.argv[2], sys.argv[3:]
counts = {"pyiceberg": {}, "duckdb": {}}

lake = load_catalog("lake", type="rest", uri=catalog, credential="ak:sk", scope="PRINCIPAL_ROLE:ALL", warehouse="lake",
                    **{"s3.endpoint": s3, "s3.access-key-id": "ak", "s3.secret-access-key": "sk",
                       "s3.region": "us-east-1"})
for space in spaces:
    counts["pyiceberg"][space] = {id[-1]: lake.load_table(id).scan().to_arrow().num_rows
                                  for id in lake.list_tables(space)}

duck = duckdb.connect(config={"allow_unsigned_extensions": "true"})
for name in ("httpfs", "avro", "iceberg"):
    root = pathlib.Path(importlib.util.find_spec(f"duckdb_extension_{name}").origin).parent
    file, = root.glob(f"extensions/v{duckdb.__version__}/{name}.duckdb_extension")
    duck.execute(f"LOAD '{file}'")
duck.execute("SET enable_geoparquet_conversion = false")
duck.execute(f"CREATE SECRET (TYPE s3, KEY_ID 'ak', SECRET 'sk', ENDPOINT '{s3.removeprefix('http://')}', "
             "URL_STYLE 'path', USE_SSL false, REGION 'us-east-1')")
duck.execute("CREATE SECRET login (TYPE iceberg, CLIENT_ID 'ak', CLIENT_SECRET 'sk', "
             f"OAUTH2_SCOPE 'PRINCIPAL_ROLE:ALL', OAUTH2_SERVER_URI '{catalog}/v1/oauth/tokens')")
duck.execute(f"ATTACH 'lake' AS lake (TYPE iceberg, SECRET login, ENDPOINT '{catalog}')")
for space in spaces:
    counts["duckdb"][space] = {}
    for name in counts["pyiceberg"][space]:
        counts["duckdb"][space][name], = duck.execute(
            f"SELECT count(topic) FROM (SELECT topic FROM lake.{space}.{name})").fetchone()

print(json.dumps(counts))
