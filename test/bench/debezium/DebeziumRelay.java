import io.debezium.embedded.Connect;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import java.io.FileReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * Debezium's engine with the outbox event router, writing to Kafka as Debezium Server does: all records of a batch are
 * sent, the batch is done when each is acknowledged. Arguments: engine properties, producer properties, number of
 * records after which to end. Ends as well when stdin is closed, so that it never outlives its parent.
 */
public final class DebeziumRelay {
  public static void main(String[] args) throws Exception {
    Properties engineProperties = load(args[0]);
    Properties producerProperties = load(args[1]);
    long expected = Long.parseLong(args[2]);
    CountDownLatch end = new CountDownLatch(1);
    AtomicReference<String> failure = new AtomicReference<>();
    KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(producerProperties, new ByteArraySerializer(), new ByteArraySerializer());
    long[] acknowledged = {0};

    DebeziumEngine<ChangeEvent<SourceRecord, SourceRecord>> engine =
        DebeziumEngine.create(Connect.class)
            .using(engineProperties)
            .notifying(
                (List<ChangeEvent<SourceRecord, SourceRecord>> batch,
                    DebeziumEngine.RecordCommitter<ChangeEvent<SourceRecord, SourceRecord>> committer) -> {
                  int routed = 0;
                  for (ChangeEvent<SourceRecord, SourceRecord> event : batch) {
                    SourceRecord source = event.value();
                    if (source == null || !(source.value() instanceof byte[] || source.value() instanceof ByteBuffer)) {
                      continue;
                    }
                    ProducerRecord<byte[], byte[]> record =
                        new ProducerRecord<>(source.topic(), null, bytes(source.key()), bytes(source.value()));
                    for (Header header : source.headers()) {
                      record.headers().add(header.key(), bytes(header.value()));
                    }
                    producer.send(
                        record,
                        (metadata, error) -> {
                          if (error != null) {
                            failure.set(error.toString());
                            end.countDown();
                          }
                        });
                    routed += 1;
                  }
                  producer.flush();
                  for (ChangeEvent<SourceRecord, SourceRecord> event : batch) {
                    committer.markProcessed(event);
                  }
                  committer.markBatchFinished();
                  acknowledged[0] += routed;
                  if (acknowledged[0] >= expected) {
                    end.countDown();
                  }
                })
            .using(
                (DebeziumEngine.CompletionCallback)
                    (success, message, error) -> {
                      if (!success) {
                        failure.compareAndSet(null, message + (error == null ? "" : ": " + error));
                      }
                      end.countDown();
                    })
            .build();

    Thread runner = new Thread(engine, "engine");
    runner.start();
    Thread parent =
        new Thread(
            () -> {
              try {
                while (System.in.read() >= 0) {}
              } catch (java.io.IOException ignored) {
                // A broken pipe is an end too.
              }
              end.countDown();
            },
            "parent");
    parent.setDaemon(true);
    parent.start();
    end.await();
    engine.close();
    runner.join(10_000);
    producer.close();
    if (failure.get() != null) {
      System.err.println("debezium relay failed: " + failure.get());
      System.exit(1);
    }
    System.out.println("acknowledged " + acknowledged[0]);
    System.exit(0);
  }

  private static byte[] bytes(Object value) {
    if (value == null) {
      return null;
    }
    if (value instanceof byte[] array) {
      return array;
    }
    if (value instanceof ByteBuffer buffer) {
      byte[] copy = new byte[buffer.remaining()];
      buffer.duplicate().get(copy);
      return copy;
    }
    return value.toString().getBytes(StandardCharsets.UTF_8);
  }

  private static Properties load(String path) throws Exception {
    Properties properties = new Properties();
    try (FileReader reader = new FileReader(path)) {
      properties.load(reader);
    }
    return properties;
  }
}
