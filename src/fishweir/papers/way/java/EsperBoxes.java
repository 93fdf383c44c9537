/** Peer of the experiment `way`: Esper. Reads queries, boxes of four integers each, then points; writes integers. */
import com.espertech.esper.common.client.*;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.*;
import com.espertech.esper.runtime.client.*;
import java.io.*;
import java.util.*;

public class EsperBoxes {
    /** One statement with a context partition for each box, since each statement is compiled to classes. Half-open
     * ranges, which the filter index supports. */
    static final String STATEMENTS =
        "create context EachBox initiated by Box as box;\n"
        + "@name('inside') context EachBox select context.box.id as id from Point(\n"
        + "  x in [context.box.a : context.box.b), y in [context.box.c : context.box.d))";

    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 20));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 20));
        Configuration configuration = new Configuration();
        configuration.getCommon().addEventType("Box", "id a b c d".split(" "), types(5));
        configuration.getCommon().addEventType("Point", "x y".split(" "), types(2));
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        EPCompiled compiled = EPCompilerProvider.getCompiler().compile(STATEMENTS, new CompilerArguments(configuration));
        EPRuntime runtime = EPRuntimeProvider.getDefaultRuntime(configuration);
        List<Integer> found = new ArrayList<>();
        for (EPStatement statement : runtime.getDeploymentService().deploy(compiled).getStatements())
            if (statement.getName().equals("inside"))
                statement.addListener((news, olds, it, of) -> {
                    for (EventBean one : news) found.add((Integer) one.get("id"));
                });
        EPEventService events = runtime.getEventService();
        int queries = in.readInt();
        for (int i = 0; i < queries; i++)
            events.sendEventObjectArray(
                new Object[] {i, in.readInt(), in.readInt(), in.readInt(), in.readInt()}, "Box");
        out.writeInt(queries);
        out.flush();
        while (true) {
            int size;
            try { size = in.readInt(); } catch (EOFException over) { runtime.destroy(); return; }
            for (int i = 0; i < size; i++) {
                found.clear();
                events.sendEventObjectArray(new Object[] {in.readInt(), in.readInt()}, "Point");
                out.writeInt(found.size());
                for (int query : found) out.writeInt(query);
            }
            out.flush();
        }
    }

    static Object[] types(int count) {
        Object[] types = new Object[count];
        Arrays.fill(types, int.class);
        return types;
    }
}
