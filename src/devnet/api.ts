import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { verifyCall } from '../base/values/call-signature.ts';
import { type HttpService, type ListenOptions, readBody, serve } from './http-service.ts';

export interface WeatherApiOptions extends ListenOptions {
  /** The secret with which the gateway signs the requests that are paid for. */
  readonly secret: string;
}

const maxBodyBytes = 65_536;
const betweenHoursMs = 100;
const hours = ['09:00', '12:00', '15:00', '18:00'];

/**
 * Starts an example of an API that is sold by paid routes: `GET /weather/CITY` answers JSON, `GET /forecast/CITY` a stream of events, and
 * `GET /history/CITY?days=N` as many days as are asked for, whose price a header says. All refuse (401) what no gateway has signed as paid for. `GET /` lists them, for nothing.
 * @throws when the port is taken
 */
export function startWeatherApi({ secret, ...options }: WeatherApiOptions): Promise<HttpService> {
  return serve(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://api');
    const [, kind = '', city = ''] = /^\/(weather|forecast|history)\/([^/]+)$/.exec(pathname) ?? [];
    if (request.method === 'GET' && pathname === '/')
      return json(response, 200, { paths: ['/weather/CITY', '/forecast/CITY', '/history/CITY?days=N'] });
    if (request.method !== 'GET' || city === '')
      return json(response, 404, { error: 'there is no such path' });
    if (!(await isPaidFor(request, secret)))
      return json(response, 401, { error: 'no gateway has signed this request as paid for' });
    if (kind === 'history') return sendHistory(response, city, searchParams.get('days') ?? '7');
    return kind === 'weather' ? json(response, 200, weatherOf(city)) : streamForecast(response, city);
  }, options);
}

async function isPaidFor(request: IncomingMessage, secret: string): Promise<boolean> {
  const body = await readBody(request, maxBodyBytes);
  return verifyCall({ secret, headers: request.headers, body, nowSecs: Date.now() / 1_000 }).ok;
}

/** The same for a name every time. */
function weatherOf(city: string, hour = '') {
  const sum = Buffer.from(`${city}${hour}`).reduce((total, byte) => total + byte, 0);
  return { city, celsius: sum % 30, sky: ['clear', 'cloudy', 'rain'][sum % 3] };
}

async function streamForecast(response: ServerResponse, city: string): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const hour of hours) {
    response.write(`data: ${JSON.stringify({ hour, ...weatherOf(city, hour) })}\n\n`);
    await sleep(betweenHoursMs);
  }
  response.end();
}

const mostDays = 30;

/** A day costs 0.002 dollars; the header says what all of them cost. */
function sendHistory(response: ServerResponse, city: string, asked: string): void {
  if (!/^\d{1,2}$/.test(asked) || Number(asked) > mostDays)
    return json(response, 400, { error: `days is a whole number of at most ${mostDays}` });
  const days = Array.from({ length: Number(asked) }, (_, ago) => ({ ago, ...weatherOf(city, String(ago)) }));
  response.setHeader('x-price', `${(days.length * 0.002).toFixed(3)} USD`);
  return json(response, 200, { city, days });
}

function json(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(value)}\n`);
}
