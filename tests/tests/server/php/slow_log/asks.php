<?php
if (!function_exists('slow_log_asks')) {
    function slow_log_asks(): string
    {
        $db = new PDO('mysql:host=127.0.0.1;port=__PORT__', 'tester', '', [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
        try {
            $db->query("SELECT SLEEP(600), 'secret' /* slow_log */")->fetchAll();
        } catch (PDOException) {
            // The test has ended the query.
        }
        return 'asked';
    }
}
echo slow_log_asks();
