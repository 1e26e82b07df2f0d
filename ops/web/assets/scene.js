// Scenes as the server sends them: a header of JSON and sections of numbers, little endian.

const magic = 0x31504e45; // "ENP1"
const utf8 = new TextDecoder();
const arrays = { i16: Int16Array, u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array };

// decode reads a binary message. The sections are views of the buffer, not copies. It throws
// an Error for what is no scene.
export function decode(buffer) {
  const words = new DataView(buffer);
  if (buffer.byteLength < 8 || words.getUint32(0, true) !== magic) throw new Error("no scene: unknown magic");
  const length = words.getUint32(4, true);
  if (8 + length > buffer.byteLength) throw new Error("no scene: its header is cut off");
  const header = JSON.parse(utf8.decode(new Uint8Array(buffer, 8, length)));
  const scene = {
    header,
    key: keyOf(header.stream),
    id: header.partition + "/" + header.offset + "/" + header.index,
    time: Number(BigInt(header.captured_ns ?? 0)) / 1e6,
    bytes: buffer.byteLength,
  };
  for (const [name, section] of Object.entries(header.sections ?? {})) {
    const type = arrays[section.type];
    if (!type) continue; // of a later version
    if (section.at % type.BYTES_PER_ELEMENT || section.at + section.n * type.BYTES_PER_ELEMENT > buffer.byteLength) {
      throw new Error("no scene: section " + name + " lies outside");
    }
    scene[name] = new type(buffer, section.at, section.n);
  }
  checkIndices(scene.faces, (scene.hull3?.length ?? 0) / 3, "faces");
  checkIndices(scene.mesh, ((scene.meshxyz ?? scene.xyz)?.length ?? 0) / 3, "mesh");
  return scene;
}

// checkIndices throws for a position behind the points: a graphics driver would draw nothing.
function checkIndices(indices, n, name) {
  if (!indices) return;
  for (let i = 0; i < indices.length; i++)
    if (indices[i] >= n) throw new Error("no scene: section " + name + " names point " + indices[i] + " of " + n);
}

// keyOf is the text that stands for a stream in links and maps.
export const keyOf = (stream) => stream.topic + "/" + stream.sequence;

// streamOf is its inverse: Kafka's topics have no slash.
export function streamOf(key) {
  const at = key.indexOf("/");
  return { topic: key.slice(0, at), sequence: key.slice(at + 1) };
}

// offsets returns what turns the numbers of a point's coordinates into offsets from origin.
export function transform(scene) {
  if (!(scene.xyz instanceof Int16Array)) return { bias: [0, 0, 0], scale: [1, 1, 1] };
  const { min, max } = scene.header,
    scale = [0, 1, 2].map((k) => (max[k] - min[k]) / 65535);
  return { bias: scale.map((s, k) => min[k] + 32768 * s), scale };
}

const sample = new Float32Array(4096);

// range returns the quantiles low and high of one axis (0 to 2) as offsets from origin, from at most
// 4,096 points: a single outlier must not decide colours.
export function range(scene, axis, low, high) {
  const n = (scene.xyz?.length ?? 0) / 3,
    step = Math.max(1, Math.ceil(n / sample.length));
  if (!n) return [0, 0];
  const { bias, scale } = transform(scene);
  let count = 0;
  for (let i = 0; i < n; i += step) sample[count++] = bias[axis] + scale[axis] * scene.xyz[3 * i + axis];
  return quantiles(count, low, high);
}

// intensities returns the same quantiles of the intensity, 0 to 1.
export function intensities(scene, low, high) {
  const n = scene.intensity?.length ?? 0,
    step = Math.max(1, Math.ceil(n / sample.length));
  if (!n) return [0, 1];
  let count = 0;
  for (let i = 0; i < n; i += step) sample[count++] = scene.intensity[i] / 255;
  return quantiles(count, low, high);
}

function quantiles(count, low, high) {
  const part = sample.subarray(0, count).sort();
  return [part[Math.floor(low * (count - 1))], part[Math.ceil(high * (count - 1))]];
}
