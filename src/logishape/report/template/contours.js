// Lines on which values of an image are equal: marching squares, joined to long lines so that dashes run on.

// Lines of [column, row] pairs.
function contours(values, columns, rows, level) {
  return joined(segments(values, columns, rows, level));
}

// The sides of each cell, by number, that the line enters and leaves by, for each pattern of corners above the level.
// Corners: 1 upper left, 2 upper right, 4 lower right, 8 lower left. Sides: 0 upper, 1 right, 2 lower, 3 left.
const CROSSINGS = [
  [], [[3, 0]], [[0, 1]], [[3, 1]], [[1, 2]], [[3, 0], [1, 2]], [[0, 2]], [[3, 2]],
  [[2, 3]], [[2, 0]], [[0, 1], [2, 3]], [[2, 1]], [[1, 3]], [[1, 0]], [[0, 3]], [],
];

// Pairs of points; each point knows the side it lies on as a key, which the cells on both hands of it share.
function segments(values, columns, rows, level) {
  const found = [];
  for (let row = 0; row + 1 < rows; row++) {
    for (let column = 0; column + 1 < columns; column++) {
      const at = row * columns + column;
      const corners = [values[at], values[at + 1], values[at + columns + 1], values[at + columns]];
      const pattern = corners.reduce((sum, one, k) => sum + (one >= level ? 1 << k : 0), 0);
      if (pattern === 0 || pattern === 15 || corners.some(Number.isNaN)) continue;
      for (const [from, to] of CROSSINGS[pattern]) {
        found.push([
          crossing(corners, column, row, from, level, columns), crossing(corners, column, row, to, level, columns),
        ]);
      }
    }
  }
  return found;
}

function crossing([a, b, c, d], column, row, side, level, columns) {
  const share = (from, to) => (level - from) / (to - from);
  const at = row * columns + column; // upper sides have even keys, left sides odd ones
  if (side === 0) return { key: 2 * at, place: [column + share(a, b), row] };
  if (side === 1) return { key: 2 * (at + 1) + 1, place: [column + 1, row + share(b, c)] };
  if (side === 2) return { key: 2 * (at + columns), place: [column + share(d, c), row + 1] };
  return { key: 2 * at + 1, place: [column, row + share(a, d)] };
}

// Segments that share a point, one after the other.
function joined(pairs) {
  const touching = new Map();
  for (const pair of pairs) {
    for (const { key } of pair) touching.set(key, [...(touching.get(key) ?? []), pair]);
  }
  const left = new Set(pairs);
  const grow = (line, key) => {
    for (;;) {
      const next = touching.get(key).find((pair) => left.has(pair));
      if (next === undefined) return line;
      left.delete(next);
      const end = next[0].key === key ? next[1] : next[0];
      line.push(end.place);
      key = end.key;
    }
  };
  const lines = [];
  for (const pair of pairs) {
    if (!left.delete(pair)) continue;
    const [from, to] = pair;
    const back = grow([from.place], from.key).reverse();
    lines.push([...back, ...grow([to.place], to.key)]);
  }
  return lines;
}
