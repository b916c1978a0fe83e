import { z } from 'zod';
import { ifNoneMatch, notModified, type Operation } from './operation.ts';

export const documentOperation: Operation = {
  method: 'get',
  path: '/openapi.json',
  id: 'getOpenApi',
  tag: 'Reference',
  summary: 'This document',
  description: 'OpenAPI 3.1. `/docs` shows it as a page.',
  requestHeaders: [ifNoneMatch],
  answers: [
    {
      status: 200,
      description: 'The document.',
      schema: z.looseObject({ openapi: z.literal('3.1.0') }),
      headers: ['ETag'],
    },
    notModified,
  ],
  refusals: [],
};
