import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The file of this program, for another process; compiled where the package is packed. */
export const thisProgram = fileURLToPath(
  new URL(`../tollbook${path.extname(import.meta.url)}`, import.meta.url),
);
