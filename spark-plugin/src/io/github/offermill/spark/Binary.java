package io.github.offermill.spark;

import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.security.CodeSource;

/** Finds the program <code>offermill</code>. */
final class Binary {
    static final String KEY = "spark.offermill.binary";

    private Binary() {}

    /**
     * The program that the setting names; else the one beside this jar, as in the Python package; else the first in
     * PATH.
     *
     * @param given the setting, or null
     * @param path the variable PATH, or null
     * @throws IllegalArgumentException if there is none
     */
    static Path find(String given, String path) {
        if (given != null && !given.trim().isEmpty()) {
            Path binary = Paths.get(given.trim());
            if (!isProgram(binary)) {
                throw new IllegalArgumentException(
                    KEY + " is \"" + given + "\", but must be the program offermill, which can be executed");
            }
            return binary.toAbsolutePath();
        }
        Path beside = besideJar();
        if (beside != null) {
            return beside;
        }
        for (String folder : path == null ? new String[0] : path.split(":")) {
            try {
                Path binary = Paths.get(folder.isEmpty() ? "." : folder, "offermill");
                if (isProgram(binary)) {
                    return binary.toAbsolutePath();
                }
            } catch (InvalidPathException odd) {
                // No program is there.
            }
        }
        throw new IllegalArgumentException("the program offermill isn't in PATH: install it on the driver's machine"
            + " (the Python package offermill has it), or set " + KEY + " to its path");
    }

    private static Path besideJar() {
        try {
            CodeSource source = Binary.class.getProtectionDomain().getCodeSource();
            Path folder = Paths.get(source.getLocation().toURI()).getParent();
            Path binary = folder == null ? null : folder.resolve("bin").resolve("offermill");
            return binary != null && isProgram(binary) ? binary : null;
        } catch (URISyntaxException | RuntimeException unknown) {
            // A class loader that doesn't tell where classes are from, or no file.
            return null;
        }
    }

    private static boolean isProgram(Path path) {
        return Files.isRegularFile(path) && Files.isExecutable(path);
    }
}
