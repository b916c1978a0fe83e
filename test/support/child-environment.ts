import { processEnvironment } from '../../src/base/config/environment.ts';

/**
 * What a Node program that a test starts gets from this process: PATH, and the compile cache that vitest.config.ts names, which
 * saves half of what a start costs. A program that is killed writes none: it must exist before.
 */
export function childEnvironment(): Record<string, string> {
  const { PATH = '', NODE_COMPILE_CACHE } = processEnvironment();
  return { PATH, ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }) };
}
