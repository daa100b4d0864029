import { describe, expect, it } from "vitest";
import { crc32c } from "./crc32c.ts";
import { murmur2, partitionOf } from "./kafka-partitioner.ts";
import { prepareRecordBatch } from "./kafka-record-batch.ts";

const identity = { producerId: 4_000_000_000_001n, producerEpoch: 3, baseSequence: 77 };

describe("record batch", () => {
  it("computes CRC-32C as RFC 3720 gives it", () => {
    expect(crc32c(Buffer.alloc(32, 0)).toString(16)).toBe("8a9136aa");
    expect(crc32c(Buffer.alloc(32, 0xff)).toString(16)).toBe("62a8ab43");
    expect(crc32c(Buffer.from(Array.from({ length: 32 }, (_, i) => i))).toString(16)).toBe("46dd794e");
    expect(crc32c(Buffer.from("xx123456789"), 2)).toBe(0xe3069283);
  });

  it("hashes keys as Kafka's own tests say", () => {
    // org.apache.kafka.common.utils.UtilsTest#testMurmur2
    const known: Record<string, number> = {
      "21": -973932308,
      foobar: -790332482,
      "a-little-bit-long-string": -985981536,
      "a-little-bit-longer-string": -1486304829,
      lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8: -58897971,
      abc: 479470107,
    };
    for (const [key, hash] of Object.entries(known)) expect(murmur2(Buffer.from(key)) | 0).toBe(hash);
    expect(partitionOf("abc", 6)).toBe(479470107 % 6);
    const long = "a-little-bit-longer-string".repeat(200);
    expect(partitionOf(long, 1_000_003)).toBe((murmur2(Buffer.from(long)) & 0x7fffffff) % 1_000_003);
  });

  it("writes lengths, identity and checksum where the broker looks for them", () => {
    const prepared = prepareRecordBatch(
      [
        { topic: "t", key: "k", value: Buffer.from("value"), headers: { a: "b", ü: "" }, timestampMs: 1_000 },
        { topic: "t", key: "", value: Buffer.alloc(0), headers: {}, timestampMs: 900 },
      ],
      identity,
    );
    const whole = Buffer.alloc(prepared.bytes + 10, 0xee);
    prepared.write(whole, 10);
    const batch = whole.subarray(10);
    expect(batch.readInt32BE(8)).toBe(batch.length - 12);
    expect(batch.readInt8(16)).toBe(2);
    expect(batch.readUInt32BE(17)).toBe(crc32c(batch, 21));
    expect(batch.readInt32BE(23)).toBe(1);
    expect([batch.readBigInt64BE(27), batch.readBigInt64BE(35)]).toEqual([1_000n, 1_000n]);
    expect(batch.readBigInt64BE(43)).toBe(identity.producerId);
    expect([batch.readInt16BE(51), batch.readInt32BE(53), batch.readInt32BE(57)]).toEqual([3, 77, 2]);
    // length, attributes, timestamp delta, offset delta, key, value, headers: zigzag varints
    expect(batch.subarray(61).toString("hex")).toBe(
      "28000000" + "026b" + "0a76616c7565" + "04" + "02610262" + "04c3bc00" + "0e00c70102000000",
    );
  });
});
