// What a person does with a view: mouse, finger, wheel, slider and keys.

const KEYS = {
  ArrowUp: STEP_MM, ArrowDown: -STEP_MM, PageUp: PAGE_MM, PageDown: -PAGE_MM,
};
const NOTCH = 40; // pixels of scrolling that are one slice: a wheel gives more at once, a touch pad less

function listen(view) {
  const { canvas, slider, state } = view;
  slider.addEventListener("input", () => scroll(view, Number(slider.value) - offsetOf(view, state.point)));
  canvas.addEventListener("wheel", (event) => {
    if (event.ctrlKey) return; // the browser's zoom
    event.preventDefault();
    scroll(view, -notches(view, event) * (event.shiftKey ? PAGE_MM : STEP_MM));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => onKey(view, event));
  canvas.addEventListener("pointerdown", (event) => onPress(view, event));
  canvas.addEventListener("pointermove", (event) => onMove(view, event));
  canvas.addEventListener("pointerleave", () => state.hover(view, null));
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
}

// -1, 0 or 1 slices.
function notches(view, event) {
  const turned = event.deltaY || event.deltaX; // with shift, browsers turn the wheel's direction
  const pixels = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? turned : Math.sign(turned) * NOTCH;
  if (Math.sign(pixels) !== Math.sign(view.wheeled)) view.wheeled = 0;
  view.wheeled += pixels;
  if (Math.abs(view.wheeled) < NOTCH) return 0;
  view.wheeled = 0;
  return Math.sign(pixels);
}

// Up and down change the slice; with shift, arrows move the crosshair in the plane.
function onKey(view, event) {
  const { right, up } = view.spec;
  const within = { ArrowUp: [up, 1], ArrowDown: [up, -1], ArrowRight: [right, 1], ArrowLeft: [right, -1] }[event.key];
  if (event.shiftKey && within) shift(view, within[0], within[1] * STEP_MM);
  else if (!event.shiftKey && KEYS[event.key]) scroll(view, KEYS[event.key]);
  else if (event.key === "Home") view.state.reset();
  else return;
  event.preventDefault();
}

// The left button sets the crosshair; the right one, or with shift, changes the window.
function onPress(view, event) {
  const { canvas, state } = view;
  canvas.focus({ preventScroll: true });
  if (event.button === 2 || event.shiftKey) {
    state.drag = { x: event.clientX, y: event.clientY, window: state.window };
    canvas.setPointerCapture(event.pointerId);
  } else if (event.button === 0) {
    view.moved(pointUnder(view, event));
  }
}

function onMove(view, event) {
  const { state } = view;
  if (state.drag && event.buttons) {
    const [low, high] = state.drag.window, width = high - low, size = view.canvas.clientWidth;
    const wider = width * Math.exp((2 * (event.clientX - state.drag.x)) / size);
    const level = (low + high) / 2 + (width * (event.clientY - state.drag.y)) / size;
    state.setWindow(level, wider);
  } else {
    state.drag = null;
    if (event.buttons === 1 && event.pointerType === "mouse") view.moved(pointUnder(view, event));
  }
  state.hover(view, event);
}
