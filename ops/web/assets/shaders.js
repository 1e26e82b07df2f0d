// Programs of the graphics processor (WebGL 2). Positions arrive as 16-bit or float numbers,
// and become offsets by bias and scale.

const head = "#version 300 es\nprecision highp float;\n";

export const points = [
  head +
    `
layout(location=0) in vec3 q;
layout(location=1) in float value;
uniform vec3 bias, scale, plain;
uniform mat4 project;
uniform vec3 size;      // pixels at the target's distance, least, most
uniform float reach;    // distance of the target; 0 from above
uniform vec2 range;
uniform int mode;       // 0 plain, 1 height, 2 intensity, 3 return
uniform sampler2D map;
out vec3 colour;
void main() {
  vec3 p = bias + scale * q;
  gl_Position = project * vec4(p, 1.0);
  gl_PointSize = reach > 0.0 ? clamp(size.x * reach / max(gl_Position.w, 1e-6), size.y, size.z) : size.x;
  float t = mode == 1 ? p.z : value;
  t = clamp((t - range.x) / max(range.y - range.x, 1e-9), 0.0, 1.0);
  if (mode == 0) colour = plain;
  else if (mode == 3) colour = texelFetch(map, ivec2(int(value * 255.0 + 0.5), 1), 0).rgb;
  else colour = texture(map, vec2((t * 255.0 + 0.5) / 256.0, 0.25)).rgb;
}`,
  head +
    `
in vec3 colour;
uniform int shape;      // 0 square, 1 disc, 2 disc with a rim
uniform vec3 rim;
out vec4 pixel;
void main() {
  float r = shape == 0 ? 0.0 : length(gl_PointCoord - 0.5) * 2.0;
  if (r > 1.0) discard;
  pixel = vec4(shape == 2 && r > 0.62 ? rim : colour, 1.0);
}`,
];

// Lines are drawn as rectangles, one for each pair of points: WebGL has no wide lines.
// As walls, the rectangle stands between the pair and the pair moved to bias2, scale2.
export const lines = [
  head +
    `
layout(location=0) in vec3 a;
layout(location=1) in vec3 b;
uniform vec3 bias, scale, bias2, scale2;
uniform mat4 project;
uniform vec2 view;      // pixels
uniform float width;    // pixels
uniform int kind;       // 0 a to b, 1 a to a moved, 2 wall
void main() {
  int v = gl_VertexID;
  if (kind == 2) {
    vec3 c = v % 2 == 0 ? a : b;
    gl_Position = project * vec4(v < 2 ? bias + scale * c : bias2 + scale2 * c, 1.0);
    return;
  }
  vec4 p = project * vec4(bias + scale * a, 1.0);
  vec4 q = project * vec4(kind == 1 ? bias2 + scale2 * a : bias + scale * b, 1.0);
  float near = 1e-4;
  if (p.w < near && q.w < near) { gl_Position = vec4(2.0, 2.0, 2.0, 1.0); return; }
  if (p.w < near) p = mix(p, q, (near - p.w) / (q.w - p.w));
  if (q.w < near) q = mix(q, p, (near - q.w) / (p.w - q.w));
  vec2 along = (q.xy / q.w - p.xy / p.w) * view;
  along = length(along) > 1e-6 ? normalize(along) : vec2(1.0, 0.0);
  vec2 across = vec2(-along.y, along.x) * (v % 2 == 0 ? -1.0 : 1.0);
  vec4 c = v < 2 ? p : q;
  vec2 end = along * (v < 2 ? -1.0 : 1.0);
  gl_Position = vec4(c.xy + (across + 0.5 * end) * width / view * c.w, c.zw);
}`,
  head +
    `
uniform vec4 colour;
out vec4 pixel;
void main() { pixel = colour; }`,
];

// Triangles and hairlines in one colour.
export const flat = [
  head +
    `
layout(location=0) in vec3 q;
uniform vec3 bias, scale;
uniform mat4 project;
void main() { gl_Position = project * vec4(bias + scale * q, 1.0); }`,
  lines[1],
];
