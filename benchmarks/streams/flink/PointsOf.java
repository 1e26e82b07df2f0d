package entropipe.peers;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.flink.table.annotation.DataTypeHint;
import org.apache.flink.table.annotation.FunctionHint;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.TableFunction;

/** The points of a value that is an Arrow stream: a row each, in Flink's own form of a row. */
@FunctionHint(
    output =
        @DataTypeHint(
            value = "ROW<point_idx INT, x FLOAT, y FLOAT, z FLOAT, intensity FLOAT>",
            bridgedTo = RowData.class))
public final class PointsOf extends TableFunction<RowData> {
  private transient BufferAllocator allocator;

  @Override
  public void open(FunctionContext context) {
    allocator = new RootAllocator();
  }

  @Override
  public void close() {
    allocator.close();
  }

  public void eval(byte[] value) throws IOException {
    try (ArrowStreamReader reader =
        new ArrowStreamReader(new ByteArrayInputStream(value), allocator)) {
      VectorSchemaRoot cloud = reader.getVectorSchemaRoot();
      Float4Vector x = (Float4Vector) cloud.getVector("x");
      Float4Vector y = (Float4Vector) cloud.getVector("y");
      Float4Vector z = (Float4Vector) cloud.getVector("z");
      Float4Vector intensity = (Float4Vector) cloud.getVector("intensity");
      GenericRowData row = new GenericRowData(5); // objects are reused: the sink keeps none
      int number = 0;
      while (reader.loadNextBatch()) {
        for (int i = 0; i < cloud.getRowCount(); i++) {
          row.setField(0, number++);
          row.setField(1, x.get(i));
          row.setField(2, y.get(i));
          row.setField(3, z.get(i));
          row.setField(4, intensity.get(i));
          collect(row);
        }
      }
    }
  }
}
