// tool.execute.before: an edit of `args` is what the tool and the hooks behind this one get.

interface ToolCall {
  tool: string;
  args: { path?: string; [name: string]: unknown };
}

interface Context {
  config: { root: string };
  inject(text: string): void;
}

export default {
  onToolBefore(ctx: Context, { tool, args }: ToolCall): void {
    if (typeof args.path !== "string") return;
    if (args.path.startsWith(ctx.config.root)) args.path = args.path.slice(ctx.config.root.length);
    if (args.path.startsWith("/")) ctx.inject(`Warning: ${tool} leaves the project: ${args.path}`);
  },
};
