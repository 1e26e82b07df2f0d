// The picture, by WebGL 2 and nothing else. Buffers and textures are made once and grow;
// a frame is written into what the frame before it used, so memory does not grow with time.

import * as shaders from "./shaders.js";
import { texels } from "./palette.js";
import { intensities, range, transform } from "./scene.js";

const still = [0, 0, 0],
  same = [1, 1, 1];

export class Picture {
  // changed is called when a lost context is back and the picture must be drawn again.
  constructor(canvas, changed) {
    this.canvas = canvas;
    this.lost = false;
    this.timings = [];
    canvas.addEventListener("webglcontextlost", (event) => {
      event.preventDefault();
      this.lost = true;
      canvas.dataset.lost = "";
    });
    canvas.addEventListener("webglcontextrestored", () => {
      this.lost = false;
      delete canvas.dataset.lost;
      this.make();
      if (this.scene) this.load(this.scene, this.origin);
      changed();
    });
    this.gl = canvas.getContext("webgl2", { antialias: true, alpha: false, powerPreference: "low-power" });
    if (this.gl) this.make();
  }

  make() {
    const gl = this.gl;
    this.programs = {};
    for (const name of ["points", "lines", "flat"]) this.programs[name] = this.program(...shaders[name]);
    this.buffers = {};
    this.map = gl.createTexture();
    this.painted = "";
    this.sync = this.later = null;
    gl.bindTexture(gl.TEXTURE_2D, this.map);
    for (const [name, value] of [
      [gl.TEXTURE_MIN_FILTER, gl.NEAREST],
      [gl.TEXTURE_MAG_FILTER, gl.NEAREST],
      [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE],
      [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE],
    ])
      gl.texParameteri(gl.TEXTURE_2D, name, value);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA8, 256, 2);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  }

  program(vertex, fragment) {
    const gl = this.gl,
      program = gl.createProgram(),
      at = {};
    for (const [type, source] of [
      [gl.VERTEX_SHADER, vertex],
      [gl.FRAGMENT_SHADER, fragment],
    ]) {
      const shader = gl.createShader(type);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
      gl.deleteShader(shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost())
      throw new Error("graphics: " + gl.getProgramInfoLog(program));
    for (let i = gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS) - 1; i >= 0; i--) {
      const { name } = gl.getActiveUniform(program, i);
      at[name] = gl.getUniformLocation(program, name);
    }
    return { program, at };
  }

  // fill writes numbers into the buffer of that name, which grows by doubling.
  fill(name, numbers, target = this.gl.ARRAY_BUFFER) {
    const gl = this.gl,
      size = numbers?.byteLength ?? 0;
    const buffer = (this.buffers[name] ??= { id: gl.createBuffer(), capacity: 0 });
    buffer.length = numbers?.length ?? 0;
    buffer.type = {
      Int16Array: gl.SHORT,
      Float32Array: gl.FLOAT,
      Uint8Array: gl.UNSIGNED_BYTE,
      Uint16Array: gl.UNSIGNED_SHORT,
      Uint32Array: gl.UNSIGNED_INT,
    }[numbers?.constructor.name];
    if (!size) return;
    gl.bindBuffer(target, buffer.id);
    if (size > buffer.capacity) {
      buffer.capacity = 2 ** Math.ceil(Math.log2(size));
      gl.bufferData(target, buffer.capacity, gl.DYNAMIC_DRAW);
    }
    gl.bufferSubData(target, 0, numbers);
  }

  // load copies a scene to the graphics processor. Offsets are drawn relative to origin.
  load(scene, origin) {
    const gl = this.gl;
    this.scene = scene;
    this.origin = origin;
    if (!gl || this.lost) return;
    this.shift = scene.header.origin.map((v, k) => v - origin[k]);
    this.quantised = transform(scene);
    this.ground = range(scene, 2, 0.02, 0.98);
    this.bright = scene.intensity ? intensities(scene, 0.02, 0.98) : [0, 1];
    this.fill("xyz", scene.xyz);
    this.fill("intensity", scene.intensity);
    this.fill("return", scene.return);
    this.fill("hull", scene.hull && closed(scene.hull));
    this.fill("hull3", scene.hull3);
    this.fill("faces", scene.faces, gl.ELEMENT_ARRAY_BUFFER);
    this.fill("ridges", scene.faces && edges(scene.faces), gl.ELEMENT_ARRAY_BUFFER);
    this.fill("maxima", scene.maxima);
    this.fill("meshxyz", scene.meshxyz);
    this.fill("mesh", scene.mesh && edges(scene.mesh), gl.ELEMENT_ARRAY_BUFFER);
  }

  // draw draws the scene. look has layers, colour, map, colours of the page, and ratio, the
  // device's pixels for one of the page. done is called when the picture is complete.
  draw(camera, look, done) {
    const gl = this.gl;
    if (!gl || this.lost) return;
    const { width, height } = this.canvas,
      { colours } = look;
    gl.viewport(0, 0, width, height);
    gl.clearColor(...colours.ground, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    if (this.scene) {
      this.paint(look.map, colours.light);
      const { min, max } = this.scene.header,
        depth = Math.hypot(max[0] - min[0], max[1] - min[1], max[2] - min[2]);
      this.matrix = camera.project(width / height, depth, this.origin);
      this.ratio = look.ratio;
      this.layers(camera, look);
    }
    if (done) this.after(done);
  }

  layers(camera, look) {
    const gl = this.gl,
      { layers, colours } = look,
      flat = camera.mode === "top" || !this.scene.header.space;
    gl.disable(gl.DEPTH_TEST);
    gl.enable(gl.BLEND);
    this.grid(camera, colours);
    if (layers.has("mesh")) this.mesh(colours);
    if (layers.has("hull") && !flat) this.walls(colours);
    if (!flat) gl.enable(gl.DEPTH_TEST);
    gl.disable(gl.BLEND);
    if (this.scene.strokes) this.strokes(colours);
    else if (layers.has("points")) this.points(camera, look);
    gl.enable(gl.BLEND);
    gl.depthMask(false);
    if (layers.has("hull3")) this.hull3(colours);
    if (layers.has("hull")) this.ring(colours);
    if (layers.has("maxima")) this.maxima(camera, colours);
    gl.depthMask(true);
  }

  points(camera, look) {
    const gl = this.gl,
      n = Math.floor(this.buffers.xyz.length / 3),
      { at } = this.use("points", this.quantised);
    const mode =
      {
        height: this.scene.header.space ? 1 : 0,
        intensity: this.scene.intensity ? 2 : 0,
        return: this.scene.return ? 3 : 0,
      }[look.colour] ?? 0;
    const size = (n < 3000 ? 4 : 2.2) * this.ratio;
    gl.uniform3f(at.size, size, 1.4 * this.ratio, 6 * this.ratio);
    gl.uniform1f(at.reach, camera.mode === "top" ? 0 : camera.distance);
    gl.uniform1i(at.mode, mode);
    gl.uniform1i(at.shape, n < 3000 ? 1 : 0);
    gl.uniform3f(at.plain, ...look.colours.plain);
    const [low, high] = mode === 1 ? this.heights() : this.bright;
    gl.uniform2f(at.range, low, high);
    this.attribute(0, "xyz", 3, 0, 0, 0);
    if (mode >= 2) this.attribute(1, mode === 2 ? "intensity" : "return", 1, 0, 0, 0, true);
    gl.drawArrays(gl.POINTS, 0, n);
    gl.disableVertexAttribArray(1);
  }

  // heights is the range of colours by height, as offsets from the origin of the picture.
  heights() {
    return this.ground.map((v) => v + this.shift[2]);
  }

  maxima(camera, colours) {
    const gl = this.gl,
      n = this.buffers.maxima.length / 3;
    if (!n) return;
    const { at } = this.use("points");
    const size = (n > 400 ? 4 : 6.5) * this.ratio;
    gl.uniform3f(at.size, size, 0.7 * size, 1.4 * size);
    gl.uniform1f(at.reach, camera.mode === "top" ? 0 : camera.distance);
    gl.uniform1i(at.mode, 0);
    gl.uniform1i(at.shape, 2);
    gl.uniform3f(at.plain, ...colours.maxima);
    gl.uniform3f(at.rim, ...colours.ground);
    this.attribute(0, "maxima", 3, 0, 0, 0);
    gl.drawArrays(gl.POINTS, 0, n);
  }

  mesh(colours) {
    const gl = this.gl,
      n = this.buffers.mesh.length;
    if (!n) return;
    const own = this.buffers.meshxyz.length > 0,
      { at } = this.use("flat", own ? undefined : this.quantised);
    gl.uniform4f(at.colour, ...colours.mesh, n > 60000 ? 0.3 : 0.55);
    this.attribute(0, own ? "meshxyz" : "xyz", 3, 0, 0, 0);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers.mesh.id);
    gl.drawElements(gl.LINES, n, this.buffers.mesh.type, 0);
  }

  hull3(colours) {
    const gl = this.gl,
      n = this.buffers.faces.length;
    if (!n) return;
    const { at } = this.use("flat");
    this.attribute(0, "hull3", 3, 0, 0, 0);
    for (const [name, kind, alpha] of [
      ["faces", gl.TRIANGLES, 0.022],
      ["ridges", gl.LINES, 0.26],
    ]) {
      gl.uniform4f(at.colour, ...colours.hull3, alpha);
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers[name].id);
      gl.drawElements(kind, this.buffers[name].length, this.buffers[name].type, 0);
    }
  }

  // level is the transform that puts the corners of the hull at one height.
  level(z) {
    return { bias: [0, 0, z], scale: [1, 1, 0] };
  }

  walls(colours) {
    const [low, high] = this.ground;
    this.segments("hull", this.level(low), this.level(high), 2, 0, [...colours.hull, 0.045]);
    this.segments("hull", this.level(high), null, 0, 1.25, [...colours.hull, 0.35]);
    this.segments("hull", this.level(low), this.level(high), 1, 1.25, [...colours.hull, 0.35]);
  }

  ring(colours) {
    this.segments("hull", this.level(this.scene.header.space ? this.ground[0] : 0), null, 0, 2.25, [
      ...colours.hull,
      1,
    ]);
  }

  // segments draws the pairs of neighbours in a buffer of corners, from first on, count of them.
  segments(name, from, to, kind, width, colour, first = 0, count = this.buffers[name].length / 3 - 1) {
    const gl = this.gl,
      buffer = this.buffers[name];
    if (count < 1) return;
    const { at } = this.use("lines", from),
      stride = 3 * (buffer.type === gl.FLOAT ? 4 : 2);
    const moved = to ?? from;
    gl.uniform3f(at.bias2, ...moved.bias.map((v, k) => v + this.shift[k]));
    gl.uniform3f(at.scale2, ...moved.scale);
    gl.uniform2f(at.view, this.canvas.width, this.canvas.height);
    gl.uniform1f(at.width, width * this.ratio);
    gl.uniform1i(at.kind, kind);
    gl.uniform4f(at.colour, ...colour);
    this.attribute(0, name, 3, stride, stride * first, 1);
    this.attribute(1, name, 3, stride, stride * (first + 1), 1);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, count);
    gl.disableVertexAttribArray(1);
    gl.vertexAttribDivisor(0, 0);
    gl.vertexAttribDivisor(1, 0);
  }

  strokes(colours) {
    let first = 0;
    for (const end of this.scene.strokes) {
      this.segments("xyz", this.quantised, null, 0, 2.5, [...colours.plain, 1], first, end - first - 1);
      first = end;
    }
  }

  // grid draws lines of the ground at distances of 1, 2 or 5 times a power of ten.
  grid(camera, colours) {
    const step = spacing(camera.span / 6),
      n = 24,
      lines = (this.lattice ??= new Float32Array(4 * (2 * n + 1) * 3));
    const [x, y] = [0, 1].map((k) => Math.round(camera.target[k] / step) * step - this.origin[k]);
    const z = this.scene.header.space ? this.ground[0] + this.shift[2] : 0;
    let at = 0;
    for (let i = -n; i <= n; i++) {
      for (const end of [-n, n]) lines.set([x + i * step, y + end * step, z], 3 * at++);
      for (const end of [-n, n]) lines.set([x + end * step, y + i * step, z], 3 * at++);
    }
    this.step = step;
    this.fill("grid", lines);
    const { at: uniforms } = this.use("flat");
    this.gl.uniform3f(uniforms.bias, 0, 0, 0);
    this.gl.uniform4f(uniforms.colour, ...colours.grid, 1);
    this.attribute(0, "grid", 3, 0, 0, 0);
    this.gl.drawArrays(this.gl.LINES, 0, at);
  }

  use(name, { bias, scale } = { bias: still, scale: same }) {
    const gl = this.gl,
      { program, at } = this.programs[name];
    gl.useProgram(program);
    gl.uniformMatrix4fv(at.project, false, this.matrix);
    gl.uniform3f(at.bias, bias[0] + this.shift[0], bias[1] + this.shift[1], bias[2] + this.shift[2]);
    gl.uniform3f(at.scale, ...scale);
    return this.programs[name];
  }

  attribute(location, name, size, stride, offset, divisor, normalised = false) {
    const gl = this.gl,
      buffer = this.buffers[name];
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer.id);
    gl.enableVertexAttribArray(location);
    gl.vertexAttribPointer(location, size, buffer.type, normalised, stride, offset);
    gl.vertexAttribDivisor(location, divisor);
  }

  paint(map, light) {
    if (this.painted === map + light) return;
    this.painted = map + light;
    this.gl.bindTexture(this.gl.TEXTURE_2D, this.map);
    this.gl.texSubImage2D(
      this.gl.TEXTURE_2D,
      0,
      0,
      0,
      256,
      2,
      this.gl.RGBA,
      this.gl.UNSIGNED_BYTE,
      texels(map, light),
    );
  }

  // after calls done when the graphics processor has drawn what it was told to. While one
  // picture is under way, the newest of the later ones waits.
  after(done) {
    if (this.sync) {
      this.later = done;
      return;
    }
    const gl = this.gl;
    const sync = (this.sync = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0));
    gl.flush();
    const look = () => {
      if (this.lost || this.sync !== sync) return;
      if (gl.getSyncParameter(sync, gl.SYNC_STATUS) !== gl.SIGNALED) {
        setTimeout(look, 2);
        return;
      }
      gl.deleteSync(sync);
      this.sync = null;
      done();
      const { later } = this;
      this.later = null;
      if (later) this.after(later);
    };
    setTimeout(look, 0);
  }
}

// spacing is the largest of 1, 2, 5, 10, ... that is at most length.
export function spacing(length) {
  const power = 10 ** Math.floor(Math.log10(Math.max(length, 1e-9)));
  return power * (length >= 5 * power ? 5 : length >= 2 * power ? 2 : 1);
}

let ringed = new Float32Array(0),
  paired = new Uint32Array(0);

// closed returns the corners of a ring with the first one again at the end. The memory is
// that of the call before.
function closed(corners) {
  if (!corners.length) return corners;
  const n = corners.length + 3;
  if (ringed.length < n) ringed = new Float32Array(2 * n);
  ringed.set(corners);
  ringed.set(corners.subarray(0, 3), corners.length);
  return ringed.subarray(0, n);
}

// edges returns the sides of triangles as pairs. The memory is that of the call before.
function edges(triangles) {
  const n = 2 * triangles.length;
  if (paired.length < n) paired = new Uint32Array(2 ** Math.ceil(Math.log2(n + 1)));
  for (let i = 0, k = 0; i + 2 < triangles.length; i += 3) {
    const a = triangles[i],
      b = triangles[i + 1],
      c = triangles[i + 2];
    paired[k++] = a;
    paired[k++] = b;
    paired[k++] = b;
    paired[k++] = c;
    paired[k++] = c;
    paired[k++] = a;
  }
  return paired.subarray(0, n);
}
