// One thing that a view shows: read when asked, again when it changed, never twice at once.

const REST_MS = 300;

export class Loader {
  /** *read* returns a promise; *done(error)* is called after each reading, `error` null if it went well. */
  constructor(read, done) {
    this.value = null;
    this.error = null;
    this.isReading = false;
    this.#read = read;
    this.#done = done;
  }

  #read;
  #done;
  #again = false;
  #turn = 0;

  /** Read; if it is being read, once more after that. */
  async load() {
    if (this.isReading) {
      this.#again = true;
      return;
    }
    this.isReading = true;
    const turn = this.#turn;
    try {
      const value = await this.#read();
      if (turn === this.#turn) [this.value, this.error] = [value, null];
    } catch (error) {
      if (turn === this.#turn) this.error = error;
    }
    if (turn !== this.#turn) return;
    this.#done(this.error);
    setTimeout(() => this.#rested(turn), REST_MS);
  }

  #rested(turn) {
    if (turn !== this.#turn) return;
    this.isReading = false;
    if (!this.#again) return;
    this.#again = false;
    this.load();
  }

  /** Forget what was read and read anew, as for another address; what is under way is dropped. */
  renew({ keep = false } = {}) {
    this.#turn += 1;
    this.#again = this.isReading = false;
    if (!keep) this.value = null;
    return this.load();
  }
}
