import { randomUUID } from 'node:crypto';
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { openAiError, type OpenAiErrorName } from '../errors/openai-error.ts';
import { type RefusalCode, refusals } from '../errors/refusal.ts';

/** An error of Node's HTTP parser, before there is a request or within its body. */
interface ParserError extends Error {
  readonly code?: string;
  /** The bytes that it could not parse. */
  readonly rawPacket?: unknown;
}

export interface ParserErrors {
  /** Answers in the format of the requested API, as far as its path is known, and closes the connection. */
  readonly answer: (error: ParserError, socket: Socket) => void;
  readonly watch: (app: FastifyInstance) => void;
}

const codes: ReadonlyMap<string | undefined, RefusalCode & OpenAiErrorName> = new Map([
  ['HPE_HEADER_OVERFLOW', 'headers_too_large'],
  ['ERR_HTTP_REQUEST_TIMEOUT', 'request_timeout'],
]);

/** @param isChatOnly the format if the path is unknown: true for that of the chat API */
export function createParserErrors(isChatPath: (url: string) => boolean, isChatOnly: boolean): ParserErrors {
  const lastOf = new WeakMap<Socket, { readonly url: string; readonly response: ServerResponse }>();
  return {
    watch(app) {
      app.addHook('onRequest', ({ raw }, reply, done) => {
        lastOf.set(raw.socket, { url: raw.url ?? '', response: reply.raw });
        done();
      });
    },
    answer(error, socket) {
      if (error.code === 'ECONNRESET' || socket.destroyed) return;
      const last = lastOf.get(socket);
      // an answer that has begun must not be followed by another one
      if (last?.response.headersSent && !last.response.writableEnded) return void socket.destroy();
      const code = codes.get(error.code) ?? 'invalid_request';
      const url = urlIn(error.rawPacket) ?? last?.url;
      const isChat = url === undefined ? isChatOnly : isChatPath(url);
      socket.end(isChat ? openAiAnswer(code) : answerOf(code));
    },
  };
}

function urlIn(packet: unknown): string | undefined {
  return Buffer.isBuffer(packet) ? /^[A-Z]+ (\S+)/.exec(packet.toString('latin1', 0, 200))?.[1] : undefined;
}

function answerOf(code: RefusalCode): string {
  const { status, sentence } = refusals[code];
  return rawAnswer(status, { error: sentence, code });
}

function openAiAnswer(code: OpenAiErrorName): string {
  const { status, body } = openAiError(code);
  return rawAnswer(status, body, `x-request-id: ${randomUUID()}\r\n`);
}

function rawAnswer(status: number, value: object, headers = ''): string {
  const body = JSON.stringify(value);
  return (
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}\r\nContent-Type: application/json; charset=utf-8\r\n` +
    `X-Content-Type-Options: nosniff\r\n` +
    `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n${headers}\r\n${body}`
  );
}
