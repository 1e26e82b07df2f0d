"""Points of a segment of the Waymo Open Dataset, version 2, by pyarrow and numpy.

    waymo.py FOLDER CONTEXT OUT

FOLDER holds the components; OUT gets for each frame the number of points as int64 and the
points as float64 x, y, z, by laser, return, row and column. The last line that is printed
is the number of frames a second, on one core: reading and computing, not writing. What does
not change from frame to frame, such as directions of pixels, is computed once.
"""

import sys
import time

import numpy
import pyarrow
import pyarrow.parquet as parquet


def table(folder, component, context):
    return parquet.ParquetFile(f"{folder}/{component}/{context}.parquet")


def matrices(file, column, key):
    rows = file.read(columns=[key, column]).to_pylist()
    return {row[key]: numpy.array(row[column], dtype=numpy.float64).reshape(4, 4) for row in rows}


def calibrations(file):
    prefix = "[LiDARCalibrationComponent]."
    found = {}
    for row in file.read().to_pylist():
        found[row["key.laser_name"]] = (
            numpy.array(row[prefix + "extrinsic.transform"]).reshape(4, 4),
            row[prefix + "beam_inclination.min"],
            row[prefix + "beam_inclination.max"],
            row[prefix + "beam_inclination.values"],
        )
    return found


def directions(calibration, height, width):
    """The directions of the pixels in the frame of the laser."""
    extrinsic, low, high, values = calibration
    if values is None:
        inclination = low + (numpy.arange(height) + 0.5) / height * (high - low)
    else:
        inclination = numpy.array(values)
    inclination = inclination[::-1, None]
    ratio = (width - numpy.arange(width) - 0.5) / width
    azimuth = (ratio * 2 - 1) * numpy.pi - numpy.arctan2(extrinsic[1, 0], extrinsic[0, 0])
    azimuth = azimuth[None, :]
    return numpy.stack(
        [
            numpy.cos(inclination) * numpy.cos(azimuth),
            numpy.cos(inclination) * numpy.sin(azimuth),
            numpy.broadcast_to(numpy.sin(inclination), (height, width)),
        ],
        axis=-1,
    )


def rotations(angles):
    roll, pitch, yaw = angles[:, 0], angles[:, 1], angles[:, 2]
    sr, cr, sp, cp, sy, cy = (f(a) for a in (roll, pitch, yaw) for f in (numpy.sin, numpy.cos))
    rows = [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
    return numpy.stack([numpy.stack(row, axis=-1) for row in rows], axis=-2)


def points(image, rays, extrinsic, pose, world):
    seen = image[..., 0] > 0
    at = image[..., 0][seen].astype(numpy.float64)[:, None] * rays[seen]
    at = at @ extrinsic[:3, :3].T + extrinsic[:3, 3]
    if pose is not None:
        pixel = pose[seen].astype(numpy.float64)
        at = numpy.einsum("nij,nj->ni", rotations(pixel), at) + pixel[:, 3:]
        at = (at - world[:3, 3]) @ world[:3, :3]
    return at


def array(batch, column, row):
    values = batch.column(column + ".values")[row].values
    if values is None:
        return None
    shape = batch.column(column + ".shape")[row].values.to_pylist()
    return values.to_numpy().reshape(shape)


def batches(file, columns, rows):
    for batch in file.iter_batches(batch_size=rows, columns=columns, use_threads=False):
        yield batch


def frames(folder, context):
    lidar, keys = table(folder, "lidar", context), ["key.frame_timestamp_micros", "key.laser_name"]
    name = "[LiDARComponent].range_image_return"
    calibration = calibrations(table(folder, "lidar_calibration", context))
    worlds = matrices(
        table(folder, "vehicle_pose", context),
        "[VehiclePoseComponent].world_from_vehicle.transform",
        keys[0],
    )
    pose = "[LiDARPoseComponent].range_image_return1"
    poses = batches(table(folder, "lidar_pose", context), keys + [pose + ".values", pose + ".shape"], 1)
    columns = keys + [f"{name}{n}.{part}" for n in (1, 2) for part in ("values", "shape")]
    rays = {}
    for batch in batches(lidar, columns, 5):  # the rows of a frame stand together
        world = worlds[batch.column(keys[0])[0].as_py()]
        of_top = array(next(poses), pose, 0)
        found = []
        for row in numpy.argsort(batch.column(keys[1]).to_numpy()):
            row = int(row)
            laser = batch.column(keys[1])[row].as_py()
            for echo in ("1", "2"):
                image = array(batch, name + echo, row)
                if image is None:
                    continue
                if laser not in rays:
                    rays[laser] = directions(calibration[laser], *image.shape[:2])
                found.append(
                    points(image, rays[laser], calibration[laser][0], of_top if laser == 1 else None, world)
                )
        yield numpy.concatenate(found)


def main(folder, context, out):
    pyarrow.set_cpu_count(1)
    count, spent = 0, 0.0
    with open(out, "wb") as file:
        reader = frames(folder, context)
        while True:
            begin = time.process_time()
            cloud = next(reader, None)
            spent += time.process_time() - begin
            if cloud is None:
                break
            count += 1
            file.write(numpy.int64(len(cloud)).tobytes())
            file.write(cloud.astype(numpy.float64).tobytes())
    print(count / spent)


if __name__ == "__main__":
    main(*sys.argv[1:])
