// A map on a grid in the world: its values between voxels, and on planes, by linear interpolation.

async function readVolume(stored) {
  const { scale, offset, to_index: toIndex, values } = stored;
  return { scale, offset, toIndex, shape: values.shape, numbers: await unpack(values) };
}

// Where a point of the world (RAS mm) lies on the grid.
function indexOf(volume, point) {
  return volume.toIndex.map((row) => dot(row, point) + row[3]);
}

// The value at a place between voxels; NaN beyond the grid.
function valueAtIndex(volume, x, y, z) {
  const [nx, ny, nz] = volume.shape;
  if (!(x >= 0 && y >= 0 && z >= 0 && x <= nx - 1 && y <= ny - 1 && z <= nz - 1)) return NaN;
  const numbers = volume.numbers;
  const i = Math.min(Math.floor(x), Math.max(nx - 2, 0));
  const j = Math.min(Math.floor(y), Math.max(ny - 2, 0));
  const k = Math.min(Math.floor(z), Math.max(nz - 2, 0));
  const u = x - i, v = y - j, w = z - k;
  const acrossX = nx > 1 ? ny * nz : 0, acrossY = ny > 1 ? nz : 0, acrossZ = nz > 1 ? 1 : 0;
  const at = (i * ny + j) * nz + k;
  const line = (start) => numbers[start] * (1 - w) + numbers[start + acrossZ] * w;
  const sheet = (start) => line(start) * (1 - v) + line(start + acrossY) * v;
  return volume.scale * (sheet(at) * (1 - u) + sheet(at + acrossX) * u) + volume.offset;
}

function valueAt(volume, point) {
  return valueAtIndex(volume, ...indexOf(volume, point));
}

// The values on a plane, row after row from its upper left corner.
// plane: middle, right and up (of length one), half sizes and step in mm.
function sampleOn(volume, plane) {
  const { columns, rows } = sizeOf(plane);
  const corner = along(along(plane.middle, -plane.half[0], plane.right), plane.half[1], plane.up);
  const start = indexOf(volume, corner);
  const right = volume.toIndex.map((row) => dot(row, plane.right) * plane.step);
  const down = volume.toIndex.map((row) => -dot(row, plane.up) * plane.step);
  const found = new Float32Array(columns * rows);
  for (let row = 0, k = 0; row < rows; row++) {
    const first = along(start, row, down);
    for (let column = 0; column < columns; column++, k++) {
      found[k] = valueAtIndex(
        volume, first[0] + column * right[0], first[1] + column * right[1], first[2] + column * right[2],
      );
    }
  }
  return found;
}

// How many points a plane has.
function sizeOf(plane) {
  return {
    columns: Math.round((2 * plane.half[0]) / plane.step) + 1,
    rows: Math.round((2 * plane.half[1]) / plane.step) + 1,
  };
}
