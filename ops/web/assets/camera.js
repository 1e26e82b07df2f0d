// The camera: from above (parallel, so that lengths compare) or in perspective, around a
// target. Angles are radians, lengths those of the data.

const half = Math.tan(Math.PI / 8); // of a field of view of 45 degrees

export class Camera {
  constructor() {
    this.mode = "space";
    this.target = [0, 0, 0];
    this.distance = 100;
    this.yaw = -2.55;
    this.pitch = 0.52;
    this.down = false; // y runs down, as drawings are drawn
    this.matrix = new Float32Array(16);
  }

  // fit looks at a box; the extent of z counts in perspective alone.
  fit(low, high, aspect) {
    const x = Math.max(high[0] - low[0], 1e-6),
      y = Math.max(high[1] - low[1], 1e-6);
    this.target = [0, 1, 2].map((k) => (low[k] + high[k]) / 2);
    const extent =
      this.mode === "top"
        ? Math.max(y / 2, x / 2 / aspect) * 1.12
        : (Math.max(Math.hypot(x, y) / 2, (high[2] - low[2]) / 2) * 0.88) / Math.min(1, aspect);
    this.distance = Math.max(extent, 1e-6) / half;
  }

  // axes returns the directions right, up and towards the eye.
  axes() {
    const [cy, sy, cp, sp] = [Math.cos(this.yaw), Math.sin(this.yaw), Math.cos(this.pitch), Math.sin(this.pitch)];
    return [
      [-sy, cy, 0],
      [-sp * cy, -sp * sy, cp],
      [cp * cy, cp * sy, sp],
    ];
  }

  // project returns the matrix, by columns, from points minus origin to clip space.
  project(aspect, depth, origin) {
    const m = this.matrix,
      t = this.target.map((v, k) => v - origin[k]),
      d = this.distance;
    if (this.mode === "top") {
      const hy = d * half,
        far = 4 * depth + d,
        y = this.down ? -1 : 1;
      m.set([
        1 / (hy * aspect),
        0,
        0,
        0,
        0,
        y / hy,
        0,
        0,
        0,
        0,
        -1 / far,
        0,
        -t[0] / (hy * aspect),
        (-y * t[1]) / hy,
        t[2] / far,
        1,
      ]);
      return m;
    }
    const [right, up, back] = this.axes(),
      near = d / 50,
      far = 20 * d + 4 * depth;
    const f = 1 / half,
      a = (far + near) / (near - far),
      b = (2 * far * near) / (near - far);
    const eye = t.map((v, k) => v + d * back[k]),
      dot = (u) => u[0] * eye[0] + u[1] * eye[1] + u[2] * eye[2];
    for (let k = 0; k < 3; k++) {
      m[4 * k] = (f / aspect) * right[k];
      m[4 * k + 1] = f * up[k];
      m[4 * k + 2] = a * back[k];
      m[4 * k + 3] = -back[k];
    }
    m[12] = (-f / aspect) * dot(right);
    m[13] = -f * dot(up);
    m[14] = -a * dot(back) + b;
    m[15] = dot(back);
    return m;
  }

  orbit(dx, dy) {
    this.yaw -= dx * 0.006;
    this.pitch = Math.min(1.55, Math.max(0.02, this.pitch + dy * 0.006));
  }

  // pan moves the target with the pointer: dx, dy of a picture of that height in pixels.
  pan(dx, dy, height) {
    const scale = (2 * this.distance * half) / height;
    if (this.mode === "top") {
      this.target[0] -= dx * scale;
      this.target[1] += dy * scale * (this.down ? -1 : 1);
      return;
    }
    const [cy, sy] = [Math.cos(this.yaw), Math.sin(this.yaw)],
      lean = Math.max(0.3, Math.sin(this.pitch));
    this.target[0] += -dx * scale * -sy - ((dy * scale) / lean) * cy;
    this.target[1] += -dx * scale * cy - ((dy * scale) / lean) * sy;
  }

  // zoom by a factor; from above the point (x, y) of the picture, -1 to 1, stays in place.
  zoom(factor, x, y, aspect) {
    const before = this.distance;
    this.distance = Math.min(1e9, Math.max(1e-6, this.distance * factor));
    if (this.mode !== "top") return;
    const moved = (before - this.distance) * half;
    this.target[0] += x * moved * aspect;
    this.target[1] += y * moved * (this.down ? -1 : 1);
  }

  // text and read carry the camera in a link.
  text() {
    const short = (v) => String(+v.toPrecision(7));
    return [this.yaw.toFixed(3), this.pitch.toFixed(3), ...[this.distance, ...this.target].map(short)].join(",");
  }

  read(text) {
    const numbers = text.split(",").map(Number);
    if (numbers.length !== 6 || !numbers.every(Number.isFinite) || numbers[2] <= 0) return false;
    [this.yaw, this.pitch, this.distance] = numbers;
    this.target = numbers.slice(3);
    return true;
  }

  // span is the height of the picture at the target, in lengths of the data.
  get span() {
    return 2 * this.distance * half;
  }
}
