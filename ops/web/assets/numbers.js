// Numbers as people read them. Absent and non-finite ones are a dash.

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const known = (v) => typeof v === "number" && Number.isFinite(v);

// whole groups digits: 120,000.
export const whole = (v) => (known(v) ? grouped.format(v) : "–");

// short has three digits and a unit: 1.24 M.
export function short(v) {
  if (!known(v)) return "–";
  const size = Math.abs(v);
  for (const [limit, unit] of [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e4, "k"],
  ]) {
    if (size >= limit) return digits(v / (limit === 1e4 ? 1e3 : limit)) + " " + unit;
  }
  return size >= 1000 ? grouped.format(v) : digits(v);
}

// digits has at most three of them: 0.123, 1.24, 12.4, 124.
export function digits(v) {
  if (!known(v)) return "–";
  const size = Math.abs(v);
  if (size === 0) return "0";
  if (size < 0.001) return v.toExponential(1);
  return v.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

// bytes uses powers of 1000, as disks do: 12.4 MB.
export function bytes(v) {
  if (!known(v)) return "–";
  for (const [limit, unit] of [
    [1e12, "TB"],
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "kB"],
  ]) {
    if (v >= limit) return digits(v / limit) + " " + unit;
  }
  return whole(v) + " B";
}

// part says how much of a budget is in use: 21.0 of 256 MB, 900 kB of 256 MB.
export function part(used, limit) {
  const [a, b] = [bytes(used).split(" "), bytes(limit).split(" ")];
  return (a[1] === b[1] ? a[0] : a.join(" ")) + " of " + b.join(" ");
}

// ms is a time in milliseconds: 0.12 ms, 1.2 s.
export function ms(v) {
  if (!known(v)) return "–";
  return Math.abs(v) >= 10000 ? span(v / 1000) : Math.abs(v) >= 1000 ? digits(v / 1000) + " s" : digits(v) + " ms";
}

// span is a time in seconds: 12 s, 3 min 5 s, 2 h 4 min, 3 d 2 h.
export function span(v) {
  if (!known(v)) return "–";
  const s = Math.round(v);
  if (s < 1) return v > 0 ? "< 1 s" : "0 s";
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + (s % 60) + " s";
  if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor((s % 3600) / 60) + " min";
  return Math.floor(s / 86400) + " d " + Math.floor((s % 86400) / 3600) + " h";
}

// clock is the time of day of nanoseconds since 1970, given as text or number.
export function clock(ns) {
  if (!ns || ns === "0") return "–";
  const at = new Date(Number(BigInt(ns) / 1000000n));
  return at.toLocaleTimeString("en-GB") + "." + String(at.getMilliseconds()).padStart(3, "0");
}

// milliseconds since 1970 of nanoseconds given as text.
export const fromNs = (ns) => (ns ? Number(BigInt(ns) / 1000n) / 1000 : NaN);

// quantile of values that are sorted in place; NaN without values.
export function quantile(sorted, q) {
  return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] : NaN;
}
