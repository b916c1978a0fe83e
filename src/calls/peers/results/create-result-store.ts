import type { ResultStoreConfig } from '../../../base/config/config.ts';
import { bucketResults } from './bucket-results.ts';
import { folderResults } from './folder-results.ts';
import type { ResultStore } from './result-store.ts';

export function createResultStore(config: ResultStoreConfig): ResultStore {
  return config.kind === 'folder' ? folderResults(config) : bucketResults(config);
}
