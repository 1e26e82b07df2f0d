// A reel keeps the last frames of one stream, so that a paused page can step back through
// them. The newest is last.

export const length = 64;

export class Reel {
  constructor() {
    this.scenes = [];
    this.whole = null; // the one exact frame
  }

  // add puts a scene at its place in time; it returns false for one that is there already.
  add(scene) {
    let at = this.scenes.length;
    while (at > 0 && this.scenes[at - 1].time > scene.time) at--;
    if (this.scenes.some((other) => other.id === scene.id)) return false;
    this.scenes.splice(at, 0, scene);
    if (this.scenes.length > length) this.scenes.shift();
    return true;
  }

  // addExact keeps an exact frame beside the sample of the same frame, or as the newest one.
  // It returns its position. One exact frame is kept at a time: they are large.
  addExact(scene) {
    let at = this.scenes.findIndex((other) => other.id === scene.id);
    if (at < 0) {
      this.add(scene);
      at = this.scenes.indexOf(scene);
    }
    this.whole = scene;
    return at;
  }

  // get returns the scene at a position, exact if there is such a one; undefined outside.
  get(at) {
    const scene = this.scenes[at];
    return scene && this.whole?.id === scene.id ? this.whole : scene;
  }

  get newest() {
    return this.get(this.scenes.length - 1);
  }

  // forgetExact lets the memory of the exact frame go when the page plays again.
  forgetExact() {
    if (!this.whole) return;
    this.scenes = this.scenes.filter((scene) => scene !== this.whole);
    this.whole = null;
  }

  clear() {
    this.scenes = [];
    this.whole = null;
  }
}
