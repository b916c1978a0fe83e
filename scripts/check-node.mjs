// Runs before any TypeScript is loaded, so that an old Node reports its version and not a syntax error.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  console.error(
    `Node ${process.version} cannot run Tollbook: it needs 22.19 or newer.\n` +
      'On Linux x64 and arm64 `npm ci` installs Node 24 beside the project; elsewhere install Node 24.',
  );
  // could not be done, as in src/base/terminal/exit-codes.ts
  process.exit(2);
}
