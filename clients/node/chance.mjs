// chance.mjs - chance that is the same again: xoshiro128** from a seed of 52 bits. What it gives for a seed never changes, as
// instances that run have noted their seeds (tests/vectors/chance.json).

const rotate = (x, by) => (x << by) | (x >>> (32 - by));

export class Chance {
    /** @param {number} seed a whole number from 0, less than 2 ** 52 */
    constructor(seed) {
        let state = (seed % 0x100000000) ^ Math.imul(Math.floor(seed / 0x100000000), 0x9e3779b9);
        const next = () => { // splitmix32
            state = (state + 0x9e3779b9) | 0;
            let z = state ^ (state >>> 16);
            z = Math.imul(z, 0x21f0aaad);
            z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
            return z ^ (z >>> 15);
        };
        this.words = [next(), next(), next(), next()];
    }

    /** 32 bits. */
    bits() {
        const s = this.words;
        const found = Math.imul(rotate(Math.imul(s[1], 5), 7), 9) >>> 0;
        const t = s[1] << 9;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = rotate(s[3], 11);
        return found;
    }

    random() {
        const high = this.bits() >>> 5, low = this.bits() >>> 6;
        return (high * 0x4000000 + low) / 2 ** 53;
    }

    uuid4() {
        const words = [this.bits(), this.bits(), this.bits(), this.bits()];
        words[1] = ((words[1] & 0xffff0fff) | 0x4000) >>> 0;
        words[2] = ((words[2] & 0x3fffffff) | 0x80000000) >>> 0;
        const text = words.map((word) => word.toString(16).padStart(8, "0")).join("");
        return [text.slice(0, 8), text.slice(8, 12), text.slice(12, 16), text.slice(16, 20), text.slice(20)].join("-");
    }
}
