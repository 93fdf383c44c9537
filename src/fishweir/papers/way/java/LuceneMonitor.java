/** Peer of the experiment `way`: Lucene Monitor. Reads queries, two words each, then documents; writes integers. */
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.document.*;
import org.apache.lucene.index.Term;
import org.apache.lucene.monitor.*;
import org.apache.lucene.search.*;

public class LuceneMonitor {
    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 20));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 20));
        Monitor monitor = new Monitor(new WhitespaceAnalyzer());
        int queries = in.readInt();
        List<MonitorQuery> some = new ArrayList<>();
        for (int i = 0; i < queries; i++) {
            Query both = new BooleanQuery.Builder()
                .add(new TermQuery(new Term("title", in.readUTF())), BooleanClause.Occur.MUST)
                .add(new TermQuery(new Term("title", in.readUTF())), BooleanClause.Occur.MUST).build();
            some.add(new MonitorQuery(Integer.toString(i), both));
            if (some.size() == 10000) { monitor.register(some); some.clear(); }
        }
        monitor.register(some);
        out.writeInt(queries);
        out.flush();
        while (true) {
            int size;
            try { size = in.readInt(); } catch (EOFException over) { monitor.close(); return; }
            Document[] documents = new Document[size];
            for (int i = 0; i < size; i++) {
                documents[i] = new Document();
                documents[i].add(new TextField("title", in.readUTF(), Field.Store.NO));
            }
            for (int i = 0; i < size; i++) {
                Collection<QueryMatch> found = monitor.match(documents[i], QueryMatch.SIMPLE_MATCHER).getMatches();
                out.writeInt(found.size());
                for (QueryMatch match : found) out.writeInt(Integer.parseInt(match.getQueryId()));
            }
            out.flush();
        }
    }
}
