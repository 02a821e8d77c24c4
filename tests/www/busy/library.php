<?php
/* Waits in callbacks of PHP's libraries, by name: each kind does its work for one request and prints it with the request's marker. */

return [
    'output buffers' => static function (string $m): void {
        ob_start(static function (string $text, int $phase) use ($m): string {
            pause();

            return "[$phase$text$m]";
        });
        ob_start(static function (string $text): string {
            pause();

            return strtoupper($text);
        }, 10);
        echo $m;
        pause();
        echo "more of $m";
        ob_flush();
        echo print_r(new Magic($m), true), var_export([$m], true), ob_get_level() > 1 ? 'deep' : 'flat';
        ob_end_flush();
        ob_start();
        echo $m;
        pause();
        $inner = ob_get_clean();
        ob_end_flush();
        echo strrev($inner), json_encode(ob_list_handlers());
    },
    'rewriting' => static function (string $m): void {
        output_add_rewrite_var('mark', $m);
        echo '<a href="page.php">';
        pause();
        echo '<form action="page.php"></form>';
        pause();
        while (ob_get_level() > 0) {
            ob_end_flush();
        }
        output_reset_rewrite_vars();
    },
    'dumping' => static function (string $m): void {
        ob_start();
        var_dump(new Magic($m), [new Magic("in$m")]);
        echo preg_replace('/#\d+/', '#', ob_get_clean()), (eval('return ' . var_export(new Magic($m), true) . ';'))->mark;
    },
    'headers' => static function (string $m): void {
        header("X-First: $m");
        pause();
        header("X-First: second$m", false);
        setcookie('cookie', $m);
        pause();
        http_response_code(200 + crc32($m) % 4);
        header_register_callback(static function () use ($m): void {
            pause();
            header("X-Late: $m");
            header_remove('X-Removed');
        });
        header("X-Removed: $m");
        pause();
        echo implode('|', preg_grep('/^X-F/', headers_list()));
    },
    'json' => static function (string $m): void {
        echo json_encode([new Magic($m), 'deep' => [new Magic("deep$m")]]);
        json_decode('{broken');
        pause();
        echo json_last_error_msg();
        echo json_encode("\xff") === false ? json_last_error() : 'encoded';
        pause();
        echo json_last_error(), json_decode("[\"$m\"]")[0];
        pause();
        echo json_last_error();
    },
    'serialising' => static function (string $m): void {
        $a = new Sleeper($m);
        $a->self = $a;
        $text = serialize([$a, $a, new Magic("m$m")]);
        pause();
        $back = unserialize($text);
        echo $back[0] === $back[1] && $back[0]->self === $back[0] ? 'same' : 'torn', $back[0]->mark, $back[2]->mark, strlen($text);
    },
    'settings' => static function (string $m): void {
        ini_set('user_agent', $m);
        ini_set('precision', (string) (5 + crc32($m) % 9));
        date_default_timezone_set(crc32($m) % 2 ? 'Asia/Tokyo' : 'Europe/Paris');
        mb_internal_encoding(crc32($m) % 2 ? 'ISO-8859-1' : 'UTF-8');
        mb_language(crc32($m) % 2 ? 'Japanese' : 'German');
        mb_substitute_character(0x3f + crc32($m) % 5);
        error_reporting(E_ALL & ~E_USER_NOTICE & ~(crc32($m) % 2 ? E_USER_DEPRECATED : 0));
        pause();
        echo ini_get('user_agent'), 1 / 3, date('H:i T', 86400), mb_strlen("\u{e4}\u{f6}"), error_reporting(), mb_language();
        echo mb_substitute_character();
        pause();
        echo mb_convert_encoding("\u{2603}", 'ISO-8859-1', 'UTF-8'), (new DateTime('@0'))->setTimezone(new DateTimeZone(date_default_timezone_get()))->format('c e');
    },
    'multibyte' => static function (string $m): void {
        echo mb_ereg_replace_callback('[0-9]+', static function (array $found) use ($m): string {
            pause();

            return "($found[0]" . mb_ereg_replace('m', 'M', $m) . ')';
        }, "$m 12 $m 34");
    },
    'session handler' => static function (string $m): void {
        if (session_status() !== PHP_SESSION_NONE || headers_sent()) {
            return;
        }
        session_set_save_handler(new Sessions($m));
        session_id("own$m");
        session_start();
        $_SESSION['mark'] = $m;
        $_SESSION['object'] = new Sleeper($m);
        pause();
        session_write_close();
        pause();
        session_start();
        echo $_SESSION['mark'], $_SESSION['object']->mark, session_id(), session_status();
        pause();
        session_destroy();
    },
    'session files' => static function (string $m): void {
        if (session_status() !== PHP_SESSION_NONE || headers_sent()) {
            return;
        }
        session_id("file$m");
        session_start(['use_strict_mode' => 0]);
        $_SESSION['mark'] = $m;
        pause();
        echo session_encode();
        session_write_close();
        pause();
        session_start();
        echo $_SESSION['mark'], session_id();
        session_destroy();
    },
    'stream wrapper' => static function (string $m): void {
        $name = "busy://file$m";
        file_put_contents($name, str_repeat("$m\n", 5));
        echo file_get_contents($name) === str_repeat("$m\n", 5) ? 'same' : 'other', count(file($name)), file_exists($name) ? filesize($name) : 'lost';
        $file = fopen($name, 'r');
        echo fgets($file), fgetc($file), feof($file) ? 'end' : 'more';
        fclose($file);
        copy($name, "$name.copy");
        echo md5_file("$name.copy");
        unlink($name);
        unlink("$name.copy");
        clearstatcache();
        echo file_exists($name) ? 'left' : 'gone', @file_get_contents($name) === false ? error_get_last()['message'] : 'read';
        $directory = opendir("busy://$m");
        while (($entry = readdir($directory)) !== false) {
            echo $entry;
        }
    },
    'stream filter' => static function (string $m): void {
        $file = fopen('php://memory', 'w+');
        stream_filter_append($file, 'busy.reverse', STREAM_FILTER_WRITE, $m);
        fwrite($file, "one $m");
        fwrite($file, "two $m");
        rewind($file);
        echo stream_get_contents($file), file_get_contents('php://filter/read=busy.reverse|string.toupper/resource=data:,' . $m);
    },
    'http stream' => static function (string $m): void {
        $context = stream_context_create(['http' => ['header' => "X-Mark: $m"]], ['notification' => static function (int $code) use ($m): void {
            pause();
            $_GET['m'] === $m || print '[foreign]';
        }]);
        echo file_get_contents('http://127.0.0.1:' . getenv('ECHO_PORT') . "/$m", false, $context), $http_response_header[0];
        echo @file_get_contents('http://127.0.0.1:' . getenv('ECHO_PORT') . "/refuse$m") === false ? error_get_last()['message'] : 'found';
    },
    'sockets' => static function (string $m): void {
        echo echo_of("a$m"), echo_of("b$m");
        socket_create_pair(AF_UNIX, SOCK_STREAM, 0, $pair);
        socket_write($pair[0], $m);
        echo socket_read($pair[1], 100);
        socket_set_nonblock($pair[1]);
        @socket_read($pair[1], 1);
        pause();
        echo socket_last_error() === SOCKET_EAGAIN ? 'again' : socket_last_error();
        socket_clear_error();
    },
    'curl' => static function (string $m): void {
        $curl = curl_init('http://127.0.0.1:' . getenv('ECHO_PORT') . "/$m");
        $seen = '';
        curl_setopt($curl, CURLOPT_HEADERFUNCTION, static function (CurlHandle $curl, string $line) use (&$seen): int {
            pause();
            $seen .= trim($line);

            return strlen($line);
        });
        curl_setopt($curl, CURLOPT_WRITEFUNCTION, static function (CurlHandle $curl, string $data) use ($m): int {
            pause();
            echo "($data)";

            return strlen($data);
        });
        curl_exec($curl);
        echo $seen;
    },
    'structures' => static function (string $m): void {
        $heap = new Heap();
        foreach (["b$m", "c$m", "a$m"] as $value) {
            $heap->insert($value);
        }
        echo implode(iterator_to_array($heap, false));
        $object = new ArrayObject(["b$m", "a$m"]);
        $object->uasort(static function (string $a, string $b): int {
            pause();

            return strcmp($a, $b);
        });
        echo implode($object->getArrayCopy());
        $storage = new SplObjectStorage();
        $storage[$key = new Magic($m)] = "held$m";
        echo $storage[$key], count($storage);
    },
    'databases' => static function (string $m): void {
        $db = new PDO('sqlite::memory:');
        $db->sqliteCreateFunction('waits', static function (mixed $x) use ($m): string {
            pause();

            return "$x$m";
        });
        $db->sqliteCreateCollation('late', static function (string $a, string $b): int {
            pause();

            return strcmp($b, $a);
        });
        $db->sqliteCreateAggregate('joined', static function (mixed $so_far, int $row, mixed $value): string {
            pause();

            return $so_far . $value;
        }, static function (mixed $so_far) use ($m): string {
            pause();

            return "$so_far$m";
        });
        $db->exec("CREATE TABLE t (x TEXT); INSERT INTO t VALUES ('a'), ('c'), ('b')");
        echo implode($db->query('SELECT waits(x) FROM t ORDER BY x COLLATE late')->fetchAll(PDO::FETCH_COLUMN)), $db->query('SELECT joined(x) FROM t')->fetchColumn();
        $rows = $db->query('SELECT x FROM t')->fetchAll(PDO::FETCH_FUNC, static function (string $x) use ($m): string {
            pause();

            return "$x$m";
        });
        echo implode($rows), $db->query("SELECT '$m' AS mark")->fetchObject(Magic::class, ['made'])->mark;
    },
    'xml' => static function (string $m): void {
        $parser = xml_parser_create();
        xml_set_element_handler($parser, static function (XMLParser $p, string $name, array $attributes) use ($m): void {
            pause();
            echo "<$name", implode($attributes), $m;
        }, static function () use ($m): void {
            pause();
            echo '>';
        });
        xml_parse($parser, "<a x='$m'><b/>text", false);
        pause();
        xml_parse($parser, '</a>', true);
        echo xml_error_string(xml_get_error_code($parser)), simplexml_load_string("<r><i>$m</i></r>")->i;
        $sheet = new DOMDocument();
        $sheet->loadXML('<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:php="http://php.net/xsl">'
            . '<xsl:template match="/"><o><xsl:value-of select="php:function(\'xsl_waits\', string(r/i))"/></o></xsl:template></xsl:stylesheet>');
        $document = new DOMDocument();
        $document->loadXML("<r><i>$m</i></r>");
        $processor = new XSLTProcessor();
        $processor->registerPHPFunctions();
        $processor->importStylesheet($sheet);
        echo $processor->transformToXml($document);
        $path = new DOMXPath($document);
        $path->registerNamespace('php', 'http://php.net/xpath');
        $path->registerPhpFunctions();
        echo $path->query("//i[php:functionString('xsl_waits', .) = '($m)']")->length;
    },
    'xml errors' => static function (string $m): void {
        libxml_use_internal_errors(true);
        $document = new DOMDocument();
        $document->loadXML("<broken><$m></broken>");
        pause();
        echo count(libxml_get_errors()), trim(libxml_get_errors()[0]->message ?? 'none');
        libxml_clear_errors();
        libxml_use_internal_errors(false);
    },
    'formatting' => static function (string $m): void {
        if (!function_exists('numfmt_create')) {
            echo 'no intl ', $m;
            return;
        }
        $formatter = @numfmt_create('no such locale at all', 12345) ?? null;
        pause();
        echo intl_get_error_code() === 0 ? 'fine' : 'failed', $m;
    },
];
