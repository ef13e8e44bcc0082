export * from "./errors.js";
export { type Duration, type Payload, type Time, fromBase64, textOf, toBase64 } from "./encode.js";
export { newID, newKeyedID } from "./ids.js";
export type { NewTask, Task } from "./task.js";
export type { CallOptions, Request, TransportOptions } from "./transport.js";
export * from "./client.js";
export * from "./worker.js";
import type * as wire from "./types.gen.js";
export type { wire };
