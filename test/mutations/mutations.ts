import { fromAppToIdentity } from './app-to-identity.ts';
import { fromJobsToWorkers } from './jobs-to-workers.ts';
import type { Mutation } from './mutation.ts';

/** README.md beside this file says how they were drawn. */
export const mutations: readonly Mutation[] = [...fromAppToIdentity, ...fromJobsToWorkers];
