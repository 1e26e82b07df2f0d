// client.cjs URL SCENES: Foxglove's client library subscribes to every channel of a server, and
// reads messages by the definitions of Foxglove's package of schemas. SCENES says what they hold.
const assert = require("node:assert/strict");
const fs = require("node:fs");
const { FoxgloveClient } = require("@foxglove/ws-protocol");
const schemas = require("@foxglove/schemas/internal");
const protobuf = require("protobufjs");
const { WebSocket } = require("ws");

const [, , url, file] = process.argv;
const scenes = JSON.parse(fs.readFileSync(file));

// The definitions of the package, which our descriptors have no part in.
const root = new protobuf.Root();
for (const name of ["timestamp", "duration"]) {
  root.addJSON(protobuf.common.get(`google/protobuf/${name}.proto`).nested);
}
for (const schema of Object.values(schemas.foxgloveMessageSchemas)) {
  const enums = Object.values(schemas.foxgloveEnumSchemas).filter((e) => e.parentSchemaName === schema.name);
  const text = schemas.generateProto(schema, enums).replace(/^import .*$/gm, "");
  protobuf.parse(text, root, { keepCase: true });
}
root.resolveAll();

// Number for number: -0 is not 0.
const same = (got, want, what) => {
  assert.equal(got.length, want.length, what);
  got.forEach((v, i) => assert.ok(Object.is(v, want[i]), `${what}: ${v} instead of ${want[i]} at ${i}`));
};
// The coordinates of points as a viewer places them: pose plus point, in float64.
const placed = (pose, points) => {
  assert.deepEqual({ ...pose.orientation }, { w: 1 });
  const p = pose.position;
  return points.flatMap((v) => [p.x + v.x, p.y + v.y, p.z + v.z]);
};

const checks = {
  points(m, scene) {
    const bytes = Buffer.from(m.data);
    const at = Object.fromEntries(m.fields.map((f) => [f.name, f.offset]));
    const got = [], intensity = [];
    for (let k = 0; k < bytes.length; k += m.point_stride) {
      for (const axis of ["x", "y", "z"]) {
        got.push(m.pose.position[axis] + bytes.readFloatLE(k + at[axis]));
      }
      intensity.push(bytes.readFloatLE(k + at.intensity));
    }
    same(got, scene.points, "points");
    same(intensity, scene.intensity, "intensity");
    assert.equal(m.frame_id, scene.frame);
  },
  hull(m, scene) {
    const [line] = m.entities[0].lines;
    assert.equal(line.type, 1); // LINE_LOOP
    same(placed(line.pose, line.points), scene.hull, "hull");
  },
  hull3d: (m, scene) => corners(m, scene.faces),
  mesh: (m, scene) => corners(m, scene.mesh),
  maxima(m, scene) {
    assert.equal(m.entities[0].lines[0].points.length, 6 * scene.maxima);
  },
  frames(m, scene) {
    assert.deepEqual([m.offset, m.n_points, m.hull_area], [scene.offset, scene.n, scene.area]);
  },
};
function corners(m, want) {
  const [t] = m.entities[0].triangles;
  const points = placed(t.pose, t.points);
  same([...t.indices].flatMap((i) => points.slice(3 * i, 3 * i + 3)), want, "corners");
}

const expected = scenes.length * Object.keys(checks).length + scenes.filter((s) => s.frame !== "world").length;
const channels = new Map();
const seen = new Set();
let answered = false;
const client = new FoxgloveClient({ ws: new WebSocket(url, [FoxgloveClient.SUPPORTED_SUBPROTOCOL]) });
const fail = (error) => {
  console.error(error);
  process.exit(1);
};
setTimeout(() => fail(`only ${[...seen]} came`), 30_000);
client.on("error", fail);
client.on("close", () => fail("the connection ends"));
client.on("serverInfo", (m) => {
  assert.equal(m.name, "entropipe");
  assert.deepEqual(m.capabilities, []);
  assert.equal(typeof m.sessionId, "string");
});
client.on("advertise", (all) => all.forEach((c) => channels.set(client.subscribe(c.id), c)));
client.on("status", (m) => {
  assert.equal(m.level, 1, m.message);
  answered = true;
  end();
});
client.on("message", ({ subscriptionId, timestamp, data }) => {
  const c = channels.get(subscriptionId);
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const layer = c.topic.split("/").pop();
  let m;
  if (c.encoding === "json") {
    m = JSON.parse(Buffer.from(bytes).toString());
    const known = JSON.parse(c.schema).properties;
    for (const name of Object.keys(m)) assert.ok(known[name], `${name} is not in the schema`);
  } else {
    m = root.lookupType(c.schemaName).decode(bytes);
  }
  if (layer === "tf") {
    const scene = scenes.find((s) => s.frame === m.child_frame_id);
    assert.equal(m.parent_frame_id, "world");
    same([m.translation.x, m.translation.y, m.translation.z], scene.translation, "translation");
    seen.add(c.topic + scene.frame);
  } else {
    const scene = scenes.find((s) => c.topic === `/${s.topic}/${layer}`);
    assert.equal(timestamp, BigInt(scene.captured));
    checks[layer](m, scene);
    seen.add(c.topic);
  }
  if (seen.size === expected) client.subscribeConnectionGraph(); // answered with a warning
  end();
});
function end() {
  if (seen.size === expected && answered) {
    console.log(`${seen.size} messages of ${channels.size} channels`);
    process.exit(0);
  }
}
