"""Python libraries as peers, one a process: see ../peer.go for the protocol.

What a library takes is made from the file before the clock starts; what it
gives is turned into indices after it has stopped.
"""

import json
import sys
import time

import numpy as np


def scipy_ops(cloud):
    from scipy.spatial import ConvexHull, Delaunay

    return {
        "hull2d": (2, lambda p: ConvexHull(p), lambda r: ("vertices", r.vertices)),
        "hull3d": (3, lambda p: ConvexHull(p), lambda r: ("vertices", r.vertices)),
        "delaunay2d": (2, lambda p: Delaunay(p), lambda r: ("triangles", r.simplices)),
    }


def shapely_ops(cloud):
    import shapely

    # One geometry of all points, as GEOS takes them.
    shape = shapely.multipoints(cloud[:, :2]) if len(cloud) else None
    return {
        "hull2d": (2, lambda p: shapely.convex_hull(shape), lambda r: ("points", shapely.get_coordinates(r))),
    }


def moocore_ops(cloud):
    import moocore

    # It minimises a little faster than it maximises.
    negated = {dims: np.ascontiguousarray(-cloud[:, :dims]) for dims in (2, 3)}

    def output(r):
        return "vertices", np.flatnonzero(r)

    return {
        "maxima2d": (2, lambda p: moocore.is_nondominated(negated[2]), output),
        "maxima3d": (3, lambda p: moocore.is_nondominated(negated[3]), output),
    }


def manifold_ops(cloud):
    import manifold3d

    def run(p):
        hull = manifold3d.Manifold.hull_points(p)
        hull.num_vert()  # it is made when asked for
        return hull

    def output(r):
        return "points", np.asarray(r.to_mesh64().vert_properties)[:, :3]

    return {"hull3d": (3, run, output)}


LIBRARIES = {
    "scipy": ("SciPy (Qhull)", "scipy", scipy_ops),
    "shapely": ("shapely (GEOS)", "shapely", shapely_ops),
    "moocore": ("moocore", "moocore", moocore_ops),
    "manifold": ("Manifold (akuukka's quickhull)", "manifold3d", manifold_ops),
}


def version(distribution):
    from importlib import metadata

    text = metadata.version(distribution)
    if distribution == "shapely":
        import shapely

        text += ", GEOS " + shapely.geos_version_string
    return text


def answer(document):
    print(json.dumps(document), flush=True)


def save(path, form, values):
    kind = "<f8" if form == "points" else "<i4"
    np.ascontiguousarray(values, dtype=kind).tofile(path)
    return {"form": form}


def main(library):
    name, distribution, make = LIBRARIES[library]
    cloud, ops, result = np.zeros((0, 3)), make(np.zeros((0, 3))), None
    answer({"peer": name, "version": version(distribution), "ops": sorted(ops)})
    for line in sys.stdin:
        what, _, rest = line.strip().partition(" ")
        try:
            if what == "load":
                dims, _, path = rest.partition(" ")
                cloud = np.fromfile(path, dtype="<f8").reshape(-1, int(dims))
                ops = make(cloud)
                answer({"points": len(cloud)})
            elif what == "run":
                op, repetitions = rest.split()
                dims, run, output = ops[op]
                points = np.ascontiguousarray(cloud[:, :dims])
                times = []
                for _ in range(int(repetitions)):
                    start = time.perf_counter_ns()
                    result = run(points)
                    times.append(time.perf_counter_ns() - start)
                answer({"ns": times, "count": len(output(result)[1])})
            elif what == "save":
                op, _, path = rest.partition(" ")
                answer(save(path, *ops[op][2](result)))
        except Exception as e:  # said, not died of: the next input may go
            answer({"error": f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"})


main(sys.argv[1])
