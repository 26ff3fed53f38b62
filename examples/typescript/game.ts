// game.ts - the examples as a module: pawl serve --module examples/typescript/game.ts, where `npm install ./clients/node` was
// done. Combat changes rows of its host (reduce). A plain server has none, and refuses that turn by name.
export { auction } from "./auction.ts";
export { buff } from "./buff.ts";
export { combat } from "./combat.ts";
export { patrol } from "./patrol.ts";
export { quest } from "./quest.ts";
export { trade } from "./trade.ts";
