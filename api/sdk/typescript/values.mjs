// Values that handlers and callers hand in, by their names: what becomes of each says ../values.json.
export const values = {
  "text": () => "Grüße 😀",
  "no text": () => "",
  "half a character": () => "caf\udce9.txt",
  "a character of zero": () => "a\0b",
  "an escape": () => "\x1b]0;x\x07\u202e",
  "10 MB": () => "x".repeat(10_000_000),
  "nothing": () => null,
  "undefined": () => undefined,
  "five": () => 5,
  "zero": () => 0,
  "no number": () => NaN,
  "a big number": () => 5n,
  "true": () => true,
  "false": () => false,
  "a date": () => new Date(Date.UTC(2030, 0, 2)),
  "no date": () => new Date(NaN),
  "a list": () => [1, 2, 3],
  "an object": () => ({ a: [1, "ü"] }),
  "half a character within": () => ({ a: "\udce9" }),
  "a set": () => new Set([1]),
  "a cycle": () => {
    const value = [];
    value.push(value);
    return value;
  },
  "100,000 lists": () => {
    let value = [];
    for (let i = 0; i < 100_000; i++) value = [value];
    return value;
  },
  "a generator": () => (function* () {
    yield 1;
  })(),
  "a function": () => () => 1,
  "a symbol": () => Symbol("s"),
  "no prototype": () => Object.create(null),
  "hostile": () => new Proxy({}, Object.fromEntries(Reflect.ownKeys(Reflect).filter((name) => typeof name === "string").map((name) => [name, () => {
    throw new Error("not for you");
  }]))),
  "a getter that throws": () => ({
    get message() {
      throw new Error("not for you");
    },
  }),
  "bytes": () => Uint8Array.of(0, 255),
  "bytes that change": () => Buffer.from([0, 255]),
  "a view": () => new DataView(Uint8Array.of(1, 0, 255, 1).buffer, 1, 2),
  "a buffer": () => Uint8Array.of(0, 255).buffer,
};
