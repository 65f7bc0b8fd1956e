// When the pointer is over a client, draw the links of its topics: from its home to the homes of all clients that share a
// topic with it, and from those homes to the clients.
addEventListener("drawn", () => {
  for (const plot of document.querySelectorAll(".canvas")) {
    const data = plot.layout?.meta;
    if (data?.members === undefined) continue;
    let current = null;
    const draw = (client) => {
      if (client === current) return;
      current = client;
      const [x, y] = [[], []];
      const segment = (from, a, to, b) => {
        x.push(from[0][a], to[0][b], null);
        y.push(from[1][a], to[1][b], null);
      };
      if (client !== null) {
        const home = data.home[client];
        const others = new Set(data.topics[client].flatMap((topic) => data.members[topic]));
        for (const server of new Set([...others].map((other) => data.home[other]))) {
          if (server !== home) segment(data.servers, home, data.servers, server);
        }
        for (const other of others) segment(data.clients, other, data.servers, data.home[other]);
      }
      Plotly.restyle(plot, { x: [x], y: [y] }, [data.trace]);
    };
    plot.on("plotly_hover", (event) => draw(event.points[0].customdata?.[2] ?? null));
    plot.on("plotly_unhover", () => draw(null));
  }
});
