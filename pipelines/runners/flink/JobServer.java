import org.apache.beam.runners.flink.FlinkJobServerDriver;

/**
 * Beam's job server for a Flink cluster whose task managers have the jars already.
 *
 * The job server sends every jar of its class path to Flink for every pipeline, and has no option against that. It reads
 * the class path from the property below, after the classes are found.
 */
class JobServer {
    public static void main(String[] arguments) throws Exception {
        System.setProperty("java.class.path", "none.jar");
        FlinkJobServerDriver.main(arguments);
    }
}
