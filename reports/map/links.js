// Over a client: the homes of all who share a topic with it, and the way from there to its own home and to them.
addEventListener("drawn", () => {
  for (const plot of document.querySelectorAll(".canvas")) {
    const told = plot.layout?.meta;
    if (told?.members === undefined) continue;
    let shown = null;
    const draw = (client) => {
      if (client === shown) return;
      shown = client;
      const [x, y] = [[], []];
      const segment = (from, a, to, b) => {
        x.push(from[0][a], to[0][b], null);
        y.push(from[1][a], to[1][b], null);
      };
      if (client !== null) {
        const own = told.home[client];
        const others = new Set(told.topics[client].flatMap((topic) => told.members[topic]));
        for (const server of new Set([...others].map((other) => told.home[other]))) {
          if (server !== own) segment(told.servers, own, told.servers, server);
        }
        for (const other of others) segment(told.clients, other, told.servers, told.home[other]);
      }
      Plotly.restyle(plot, { x: [x], y: [y] }, [told.trace]);
    };
    plot.on("plotly_hover", (event) => draw(event.points[0].customdata?.[2] ?? null));
    plot.on("plotly_unhover", () => draw(null));
  }
});
