// Plain JavaScript that every Node can read: it says what is missing before anything else is loaded.
const [major, minor] = process.versions.node.split('.').map(Number);

/** Why this Node cannot run Tollbook; undefined if it can. */
export const complaint =
  major < 22 || (major === 22 && minor < 19)
    ? `Node ${process.version} cannot run Tollbook: it needs 22.19 or newer. Nothing was started.`
    : undefined;
