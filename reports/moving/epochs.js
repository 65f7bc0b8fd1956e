// The slider over epochs: it moves the clients of all maps, and marks the epoch in the plots over time.
addEventListener("drawn", () => {
  const box = document.querySelector(".epochs");
  if (!box) return;
  const [slider, output, play] = ["input", "output", "button"].map((name) => box.querySelector(name));
  const of = (kind) => plots.filter((plot) => plot.source.layout.meta?.epochs === kind);
  const [maps, series] = [of("map"), of("series")];
  const decoded = (text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return [...new Uint16Array(bytes.buffer)];
  };
  const scaled = (text, axis) => decoded(text).map((value) => EPOCHS.low[axis] + value * EPOCHS.step[axis]);

  function show(number) {
    const frame = EPOCHS.frames[number];
    const [x, y] = [scaled(frame.x, 0), scaled(frame.y, 1)];
    for (const plot of maps) {
      const which = plot.source.layout.meta.line;
      const home = decoded(frame.home[which]);
      const [former, current, clients, rings] = plot.source.data;
      for (const trace of [former, current, rings]) Object.assign(trace, { x: [], y: [] });
      for (const [at, before] of frame.moved[which]) {
        for (const [trace, server] of [[former, before], [current, home[at]]]) {
          trace.x.push(x[at], EPOCHS.servers[0][server], null);
          trace.y.push(y[at], EPOCHS.servers[1][server], null);
        }
        rings.x.push(x[at]);
        rings.y.push(y[at]);
      }
      Object.assign(clients, { x, y, customdata: home });
      clients.marker.color = home.map((server) => EPOCHS.colours[server]);
    }
    for (const plot of series) {
      const line = { color: "#7f8790", width: 1.5 };
      plot.source.layout.shapes = [
        { type: "line", x0: frame.minute, x1: frame.minute, yref: "paper", y0: 0, y1: 1, line },
      ];
    }
    const counts = EPOCHS.names.map((name, which) => `${name}: ${frame.moved[which].length}`).join("; ");
    output.textContent = `Minute ${frame.minute}, epoch ${frame.epoch}, ${frame.clients} clients. New homes: ${counts}.`;
    redraw([...maps, ...series]);
  }

  slider.max = EPOCHS.frames.length - 1;
  slider.value = EPOCHS.first;
  slider.addEventListener("input", () => show(Number(slider.value)));
  let timer = null;
  play.addEventListener("click", () => {
    clearInterval(timer);
    timer = timer === null ? setInterval(() => {
      slider.value = (Number(slider.value) + 1) % EPOCHS.frames.length;
      show(Number(slider.value));
    }, 700) : null;
    play.textContent = timer === null ? "play" : "stop";
  });
  show(EPOCHS.first);
});
