// Colours. Maps are perceptually even, so that equal steps of a value look equal: viridis by
// Smith and van der Walt, cividis by Nuñez, Anderton and Renslow. Between their samples
// colours are interpolated.

const samples = {
  viridis: "440154481769472c7a423f853b518b33628d2c718e26818e21908d1f9f8827ad813dbc745cc86381d34daadc32d5e21afde725",
  cividis: "00224e002d6818376f31436d424e6c52596d60646f6e6f737c7b788b87789a9376aaa073bbad6dccba64ddc858efd748fee838",
};
const returns = ["#35b779", "#f2c14e", "#d1495b", "#5f8fd6", "#b07cc6", "#8a96a3"];

export const names = ["viridis", "cividis"];

const channel = (text, at) => parseInt(text.slice(at, at + 2), 16);

// rgb reads "#rrggbb" into three numbers from 0 to 1.
export const rgb = (text) => [1, 3, 5].map((at) => channel(text.trim(), at) / 255);

// at returns the colour of t, 0 to 1, as three numbers from 0 to 255.
export function at(name, t) {
  const text = samples[name],
    n = text.length / 6 - 1,
    x = Math.min(1, Math.max(0, t)) * n;
  const i = Math.min(n - 1, Math.floor(x)),
    f = x - i;
  return [0, 2, 4].map((k) => Math.round(channel(text, 6 * i + k) * (1 - f) + channel(text, 6 * i + 6 + k) * f));
}

// part is what of a map is seen on a ground: not its palest end on a light one, nor its
// darkest on a dark one.
export const part = (t, light) => (light ? 0.86 * t : 0.1 + 0.9 * t);

// texels are two rows of 256 colours: the map, and the colours of returns 0, 1, 2, ...
export function texels(name, light) {
  const data = new Uint8Array(256 * 2 * 4);
  for (let i = 0; i < 256; i++) {
    data.set([...at(name, part(i / 255, light)), 255], 4 * i);
    data.set([...rgb(returns[i % returns.length]).map((v) => v * 255), 255], 4 * (256 + i));
  }
  return data;
}

// ofPage reads the colours that the style sheet gives to the picture.
export function ofPage() {
  const style = getComputedStyle(document.documentElement),
    get = (name) => rgb(style.getPropertyValue("--" + name));
  return {
    ground: get("ground"),
    grid: get("grid"),
    hull: get("hull"),
    hull3: get("hull3"),
    mesh: get("mesh"),
    maxima: get("maxima"),
    plain: get("plain"),
    light: style.getPropertyValue("--light").trim() === "1",
  };
}
