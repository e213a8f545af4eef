// tool.execute.after: what is injected stands in the next system prompt of the session.

export const onLoad = (ctx) => ctx.log.info(`looks for ${ctx.config.leftovers.length} leftovers`);

export default {
  onToolAfter: (ctx, { tool, args }) => {
    const content = typeof args?.content === "string" ? args.content : "";
    const found = ctx.config.leftovers.filter((each) => content.includes(each));
    if (found.length) ctx.inject(`Warning: ${tool} left ${found.join(" and ")} in ${args.path}.`);
  },
};
