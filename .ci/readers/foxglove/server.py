"""server.py URL SCENES: our server beside that of Foxglove's SDK, byte by byte.

Both get the same frames. A client subscribes to the same channels of both by
foxglove.sdk.v1; every message must have the same bytes, every answer to a wrong request
the same text. SCENES says what our frames hold; the SDK encodes them by itself.
"""
import asyncio
import base64
import json
import struct
import sys

import foxglove
import websockets
from foxglove import messages as fm
from google.protobuf import descriptor_pb2, descriptor_pool

ours, scenes = sys.argv[1], json.load(open(sys.argv[2]))


def color(r, g, b, a):
    return fm.Color(r=r / 255, g=g / 255, b=b / 255, a=a)


def expected(s):
    """The messages of a scene as the SDK encodes them, by topic."""
    time = fm.Timestamp(sec=int(s["time"]) // 10**9, nsec=int(s["time"]) % 10**9)
    x, y, z = s["origin"]
    pose = fm.Pose(position=fm.Vector3(x=x, y=y, z=z), orientation=fm.Quaternion(x=0, y=0, z=0, w=1))

    def triples(flat):
        return [tuple(flat[k:k + 3]) for k in range(0, len(flat), 3)]

    def points(flat):
        return [fm.Point3(x=a - x, y=b - y, z=c - z) for a, b, c in triples(flat)]

    def figure(layer, keys=(), **what):
        pairs = [("dataset", "synthetic"), ("sequence", s["sequence"]), ("frame_id", str(s["offset"])),
                 ("source", f"points/0/{s['offset']}/0"), *keys]
        return fm.SceneUpdate(deletions=[], entities=[fm.SceneEntity(
            timestamp=time, frame_id=s["frame"], id=layer, lifetime=fm.Duration(sec=0, nsec=0), frame_locked=False,
            metadata=[fm.KeyValuePair(key=k, value=v) for k, v in pairs], **what)])

    def mesh(corners, paint):
        places, found, index = {}, [], []
        for corner in triples(corners):
            if corner not in places:
                places[corner] = len(found)
                found.extend(points(corner))
            index.append(places[corner])
        return [fm.TriangleListPrimitive(pose=pose, points=found, color=paint, colors=[], indices=index)]

    def line(kind, corners, paint):
        return [fm.LinePrimitive(type=kind, pose=pose, thickness=2, scale_invariant=True, points=corners, color=paint,
                                 colors=[], indices=[])]

    number = fm.PackedElementFieldNumericType
    fields = [fm.PackedElementField(name=n, offset=4 * k, type=number.Int32 if n == "return" else number.Float32)
              for k, n in enumerate(("x", "y", "z", "intensity", "return"))]
    data = b"".join(struct.pack("<ffffi", p[0] - x, p[1] - y, p[2] - z, i, r)
                    for p, i, r in zip(triples(s["points"]), s["intensity"], s["return"]))
    center, arm, cross = triples(s["points"])[1], 80 / 800, []
    center = (center[0] - x, center[1] - y, center[2] - z)
    for axis in range(3):
        for sign in (-1, 1):
            moved = list(center)
            moved[axis] += sign * arm
            cross.append(fm.Point3(x=moved[0], y=moved[1], z=moved[2]))
    kind = fm.LinePrimitiveLineType
    all = {
        "points": fm.PointCloud(timestamp=time, frame_id=s["frame"], pose=pose, point_stride=20, fields=fields,
                                data=data),
        "hull": figure("hull", keys=[("area", "1.5"), ("perimeter", "80")],
                       lines=line(kind.LineLoop, points(s["hull"]), color(0, 0x72, 0xb2, 1))),
        "hull3d": figure("hull3d", triangles=mesh(s["faces"], color(0, 0x9e, 0x73, .3))),
        "maxima": figure("maxima", lines=line(kind.LineList, cross, color(0xd5, 0x5e, 0, 1))),
        "mesh": figure("mesh", triangles=mesh(s["mesh"], color(0xc4, 0xc4, 0xc4, .5))),
    }
    found = {f"/{s['topic']}/{layer}": m for layer, m in all.items()}
    if s["frame"] != "world":
        x, y, z = s["translation"]
        found["/tf"] = fm.FrameTransform(
            timestamp=time, parent_frame_id="world", child_frame_id=s["frame"],
            translation=fm.Vector3(x=x, y=y, z=z), rotation=fm.Quaternion(x=0, y=0, z=0, w=1))
    return found


def of_kind(field):
    return field.number, field.type, field.label, field.type_name.rpartition(".")[2]


def shapes(schema):
    """What a descriptor set says of each message: fields, and values of its enumerations."""
    files = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(schema, validate=True))
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)  # a file stands behind what it imports
    return {m.name: ({f.name: of_kind(f) for f in m.field},
                     [[(v.name, v.number) for v in e.value] for e in m.enum_type])
            for file in files.file for m in file.message_type}


async def talk(url, wanted, send):
    """Subscribes to the wanted topics with ids from 30, sends what send says; returns all messages."""
    async with websockets.connect(url, subprotocols=["foxglove.websocket.v1", "foxglove.sdk.v1"], max_size=None) as ws:
        assert ws.subprotocol == "foxglove.sdk.v1", ws.subprotocol
        texts, channels, binary = [], {}, {}

        async def receive(until):
            while not until():
                m = await asyncio.wait_for(ws.recv(), 20)
                if isinstance(m, bytes):
                    binary[struct.unpack_from("<I", m, 1)[0]] = m
                    continue
                texts.append(json.loads(m))
                for c in texts[-1].get("channels", ()):
                    channels[c["topic"]] = c

        await receive(lambda: wanted <= channels.keys())
        ids = {topic: 30 + k for k, topic in enumerate(sorted(wanted))}
        for topic, id in ids.items():
            subscription = {"id": id, "channelId": channels[topic]["id"]}
            await ws.send(json.dumps({"op": "subscribe", "subscriptions": [subscription]}))
        await send()
        await receive(lambda: set(ids.values()) <= binary.keys())
        answers = []
        await ws.send(json.dumps({"op": "unsubscribe", "subscriptionIds": [31, 5555]}))  # has no answer
        free = channels[sorted(wanted)[1]]["id"]
        for id, channel in (30, 4000), (999, channels["/tf"]["id"]), (30, free):
            before = len(texts)
            await ws.send(json.dumps({"op": "subscribe", "subscriptions": [{"id": id, "channelId": channel}]}))
            await receive(lambda: len(texts) > before)
            answers.append(texts[-1])
        for a in answers:  # ids of channels are the server's choice
            for topic, c in channels.items():
                a["message"] = a["message"].replace(f"channel: {c['id']};", f"channel {topic};")
        return texts[0], channels, {topic: binary[id] for topic, id in ids.items()}, answers


async def refused(url):
    """What a server says to a client of other subprotocols: status and begin of the text."""
    found = []
    for offer in (None, ["foxglove.websocket.v2"]):
        try:
            async with websockets.connect(url, subprotocols=offer):
                found.append("accepted")
        except websockets.exceptions.InvalidStatus as e:
            found.append((e.response.status_code, bytes(e.response.body)[:46]))
    return found


async def main():
    want = {}
    for s in scenes:
        want.update({topic: (m, int(s["captured"])) for topic, m in expected(s).items()})
    server = foxglove.start_server(host="127.0.0.1", port=0, name="entropipe", session_id="s")
    theirs = f"ws://127.0.0.1:{server.port}"
    channels = {topic: foxglove.Channel(topic, message_encoding="protobuf", schema=m.get_schema())
                for topic, (m, _) in want.items()}

    async def log():
        await asyncio.sleep(.5)  # the server takes subscriptions up by itself
        for topic, (m, at) in want.items():
            channels[topic].log(m.encode(), log_time=at)

    async def nothing():
        pass

    info1, channels1, bytes1, answers1 = await talk(ours, want.keys(), nothing)
    info2, channels2, bytes2, answers2 = await talk(theirs, want.keys(), log)
    for topic in want:
        a, b = bytes1[topic], bytes2[topic]
        at = next((k for k, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        assert a == b, f"{topic}: {len(a)} and {len(b)} bytes, from {at}: {a[at:at + 24].hex()} {b[at:at + 24].hex()}"
        for key in channels2[topic].keys() - {"id", "schema"}:
            assert channels1[topic][key] == channels2[topic][key], (topic, key)
        assert channels1[topic].keys() == channels2[topic].keys(), topic
        assert shapes(channels1[topic]["schema"]) == shapes(channels2[topic]["schema"]), topic
    assert info1.keys() == info2.keys() and info1["op"] == info2["op"], (info1, info2)
    assert answers1 == answers2, (answers1, answers2)
    one, two = await refused(ours), await refused(theirs)
    assert one == two, (one, two)
    server.stop()
    print(f"{len(want)} messages, {sum(map(len, bytes1.values()))} bytes")


asyncio.run(main())
