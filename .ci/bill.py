"""bill.py FILE PROGRAM: checks a bill of materials against the schema of CycloneDX and the program that it describes."""

import hashlib
import json
import subprocess
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

file, program = sys.argv[1:]
text = open(file, encoding="utf-8").read()
bill = json.loads(text)
validator = JsonStrictValidator(SchemaVersion.V1_6)
faults = [repr(fault) for fault in [validator.validate_str(text)] if fault is not None]

# A check that cannot fail is a defect: the schema refuses a bill with a wrong component.
broken = json.loads(text)
broken["components"][0]["type"] = "thing"
if validator.validate_str(json.dumps(broken)) is None:
    faults.append("the schema takes a component of type thing")

refs = [c["bom-ref"] for c in bill["components"]] + [bill["metadata"]["component"]["bom-ref"]]
if len(set(refs)) != len(refs):
    faults.append("a reference stands twice")
for dependency in bill["dependencies"]:
    for ref in [dependency["ref"], *dependency.get("dependsOn", [])]:
        if ref not in refs:
            faults.append(f"no component is called {ref}")

digest = hashlib.sha256(open(program, "rb").read()).hexdigest()
if bill["metadata"]["component"]["hashes"] != [{"alg": "SHA-256", "content": digest}]:
    faults.append("the program has another hash")
lines = subprocess.run(["go", "version", "-m", program], check=True, capture_output=True, text=True).stdout.split("\n")
linked = {tuple(line.split()[1:3]) for line in lines if line.startswith("\tdep\t")}
named = {(c["name"], c["version"]) for c in bill["components"] if c.get("purl", "").endswith("?type=module")}
if linked != named or len(linked) < 20:
    faults.append(f"the program has other modules: {sorted(linked ^ named)}")
if unlicensed := [c["name"] for c in bill["components"] if not c.get("licenses")]:
    faults.append(f"no licence: {unlicensed}")

print(*faults, sep="\n")
print(f"{file}: {len(bill['components'])} components, {len(faults)} faults")
sys.exit(bool(faults))
