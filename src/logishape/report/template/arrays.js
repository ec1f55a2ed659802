// Arrays that the page holds as compressed base64 (packed.py), and vectors of three numbers.

const ARRAY_TYPES = {
  uint8: Uint8Array, int8: Int8Array, uint16: Uint16Array, int16: Int16Array, uint32: Uint32Array,
  float32: Float32Array,
};

// Whether this browser can read them; a page in an older one keeps its still pictures.
function canUnpack() {
  return typeof DecompressionStream === "function";
}

async function unpack(packed) {
  const compressed = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const sorted = new Uint8Array(await new Response(stream).arrayBuffer());
  return new ARRAY_TYPES[packed.type](joinBytes(sorted, ARRAY_TYPES[packed.type].BYTES_PER_ELEMENT).buffer);
}

// The bytes of each number side by side again: stored are all first bytes, then all second ones, and so on.
function joinBytes(sorted, size) {
  const count = sorted.length / size;
  const joined = new Uint8Array(sorted.length);
  for (let place = 0; place < size; place++) {
    for (let k = 0; k < count; k++) joined[k * size + place] = sorted[place * count + k];
  }
  return joined;
}

function dot(a, b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

// a + factor * b
function along(a, factor, b) {
  return [a[0] + factor * b[0], a[1] + factor * b[1], a[2] + factor * b[2]];
}

function minus(a, b) {
  return [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
}
