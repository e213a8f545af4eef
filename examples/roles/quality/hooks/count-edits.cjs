// CommonJS, and a state of its own: no other hook shares it, and no other session is counted here.

const edits = new Map();

module.exports = {
  onToolAfter(ctx) {
    edits.set(ctx.sessionID, (edits.get(ctx.sessionID) ?? 0) + 1);
  },
  async onEvent(ctx, { type }) {
    const count = edits.get(ctx.sessionID) ?? 0;
    edits.delete(ctx.sessionID);
    ctx.log.info(`${count} edits until ${type}`, { agent: ctx.agent });
  },
};
