import { withEdits } from '../support/planted-copy.ts';
import { fromAppToIdentity } from './app-to-identity.ts';
import { fromJobsToWorkers } from './jobs-to-workers.ts';
import type { Catcher, Mutation } from './mutation.ts';

/** README.md beside this file says how they were drawn. */
export const mutations: readonly Mutation[] = [...fromAppToIdentity, ...fromJobsToWorkers].map((row) => {
  const { name, edits, testFile: file, testName } = withEdits(row);
  return { name, edits, ...(file !== undefined && { caughtBy: catcherOf(file, testName) }) };
});

function catcherOf(file: string, name: string | undefined): Catcher {
  return { tier: file.endsWith('.rig.ts') ? 'rigs' : 'tests', file, ...(name !== undefined && { name }) };
}
