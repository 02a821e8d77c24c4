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
        $formatter = @numfmt_create('en', 12345);
        pause();
        echo intl_get_error_code() === 0 ? 'fine' : 'failed', $m;
        transliterator_create("no $m");
        pause();
        echo intl_get_error_message();
    },
    'collating' => static function (string $m): void {
        $upper = crc32($m) % 2 === 1;
        $collator = new Collator('en');
        $collator->setAttribute(Collator::CASE_FIRST, $upper ? Collator::UPPER_FIRST : Collator::LOWER_FIRST);
        $objects = array_map(static fn (string $mark): Magic => new Magic($mark), ["b$m", 'a', "B$m", 'A']);
        $collator->sort($objects, Collator::SORT_STRING);
        echo implode(array_map(static fn (Magic $object): string => $object->mark, $objects));
        $texts = [new Magic("c$m"), new Magic("a$m"), new Magic("b$m")];
        $numbers = [3, 1, 2];
        array_multisort($texts, $upper ? SORT_DESC : SORT_ASC, SORT_STRING, $numbers);
        echo implode($numbers);
    },
    'soap' => static function (string $m): void {
        if (!extension_loaded('soap')) {
            return;
        }
        $client = new Caller(null, ['location' => 'http://localhost/', 'uri' => 'urn:own', 'classmap' => ['made' => Soaped::class], 'typemap' => [
            ['type_ns' => 'urn:own', 'type_name' => 't', 'from_xml' => static function (string $xml) use ($m): string {
                pause();

                return strip_tags($xml) . " read by $m";
            }, 'to_xml' => static function (mixed $value) use ($m): string {
                pause();

                return "<x>$value $m</x>";
            }],
        ]]);
        $answer = $client->work(new SoapVar("sent $m", null, 't', 'urn:own'));
        echo is_object($answer) ? get_class($answer) . $answer->text . $answer->made->mark : $answer, $client->sent;
        try {
            $client->fail($m);
        } catch (SoapFault $e) {
            echo $e->getMessage();
        }
        $server = new SoapServer(null, ['uri' => 'urn:own']);
        $server->setObject(new Served($m));
        ob_start();
        $server->handle('<E:Envelope xmlns:E="http://schemas.xmlsoap.org/soap/envelope/" xmlns:o="urn:own"><E:Body><o:hello><a>' . $m . '</a></o:hello></E:Body></E:Envelope>');
        echo strip_tags(ob_get_clean());
        if (!headers_sent()) {
            header_remove('Content-Length');
            header('Content-Type: text/html; charset=UTF-8');
        }
    },
    'last errors' => static function (string $m): void {
        $odd = crc32($m) % 2 === 1;
        while (openssl_error_string() !== false) {
        }
        $odd && openssl_pkey_get_private("no key $m");
        date_create_from_format('Y', $odd ? "year $m" : '2020');
        mysqli_report($odd ? MYSQLI_REPORT_OFF : MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
        pause();
        echo openssl_error_string() === false ? 'none' : 'some', json_encode(date_get_last_errors()), (new mysqli_driver())->report_mode, mysqli_connect_errno();
        mb_detect_order($odd ? ['ASCII', 'UTF-8'] : ['ASCII', 'EUC-JP']);
        stream_context_set_default(['http' => ['user_agent' => $m]]);
        pause();
        echo implode(mb_detect_order()), stream_context_get_options(stream_context_get_default())['http']['user_agent'];
    },
    'encodings of output' => static function (string $m): void {
        // Both set headers, and warnings have paths in them.
        if (headers_sent()) {
            return;
        }
        $before = mb_http_output();
        mb_http_output(crc32($m) % 2 ? 'UTF-16BE' : 'UTF-16LE');
        ob_start();
        ob_start('mb_output_handler');
        echo $m;
        pause();
        ob_flush();
        pause();
        echo strrev($m);
        ob_end_flush();
        $text = ob_get_clean();
        mb_http_output($before);
        echo bin2hex($text);
    },
    'compression' => static function (string $m): void {
        // Both set headers, and warnings have paths in them.
        if (headers_sent()) {
            return;
        }
        $_SERVER['HTTP_ACCEPT_ENCODING'] = crc32($m) % 2 ? 'gzip' : 'deflate';
        $written = '';
        ob_start(static function (string $text) use (&$written): string {
            $written .= $text;

            return '';
        });
        ob_start('ob_gzhandler');
        echo $m;
        pause();
        ob_flush();
        pause();
        echo " more $m";
        ob_end_flush();
        ob_end_clean();
        header_remove('Content-Encoding');
        header_remove('Vary');
        echo (crc32($m) % 2 ? @gzdecode($written) : @zlib_decode($written)) ?: bin2hex($written);
        $deflate = deflate_init(ZLIB_ENCODING_GZIP);
        $packed = deflate_add($deflate, $m, ZLIB_SYNC_FLUSH);
        pause();
        echo gzdecode($packed . deflate_add($deflate, "end$m", ZLIB_FINISH));
    },
    'assertions' => static function (string $m): void {
        @assert_options(ASSERT_CALLBACK, static function (string $file, int $line, mixed $nothing, ?string $what = null) use ($m): void {
            pause();
            echo "[not $what in $m]";
        });
        @assert_options(ASSERT_EXCEPTION, 0);
        @assert_options(ASSERT_WARNING, 0);
        pause();
        assert(strlen($m) === 0, "empty $m");
        pause();
        echo @assert_options(ASSERT_CALLBACK) instanceof Closure ? 'kept' : 'lost';
    },
    'entities' => static function (string $m): void {
        if (crc32($m) % 3 === 0) {
            libxml_set_external_entity_loader(static function (?string $public, string $system) use ($m): mixed {
                pause();
                $stream = fopen('php://memory', 'w+');
                fwrite($stream, "($system of $m)");
                rewind($stream);

                return $stream;
            });
        }
        pause();
        $document = new DOMDocument();
        $loaded = @$document->loadXML("<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///entity$m'>]><a>&e;$m</a>", LIBXML_NOENT);
        echo $loaded ? $document->textContent : 'not loaded';
        libxml_set_external_entity_loader(null);
    },
    'compiling' => static function (string $m): void {
        set_error_handler(static function (int $no, string $text) use ($m): bool {
            pause();
            echo "{{$text} for $m}";

            return true;
        });
        $made = eval("return new class { public function f(\$a = 1, \$b) { return '$m'; } };");
        echo $made->f(0, 0);
        pause();
        $made = eval('return new class extends ArrayObject { public function offsetGet($x) { return $x; } };');
        echo $made[$m];
        print_r(parse_ini_string("a = $m\nb = \"unterminated"));
        ob_start(static function (string $text): string {
            pause();

            return strtoupper($text);
        }, 1);
        highlight_string("<?php echo '$m'; // $m");
        ob_end_flush();
        restore_error_handler();
    },
    'coroutines' => static function (string $m): void {
        $parts = [];
        $part = static function (string $name) use ($m, &$parts): void {
            pause();
            @trigger_error("silent in $m");
            trigger_error("unheard of $m");
            pause();
            $parts[] = "$name {$_GET['m']} " . error_reporting();
        };
        $level = error_reporting(E_ALL & ~E_USER_NOTICE);
        set_error_handler(static function (int $no, string $text) use ($m, $part): bool {
            both($part, 'in the handler', 'in it, too');
            echo "{{$text} $m}";

            return true;
        }, E_USER_WARNING);
        both($part, 'one', 'two');
        trigger_error("from $m", E_USER_WARNING);
        restore_error_handler();
        error_reporting($level);
        sort($parts);
        echo implode(',', $parts);
    },
    'ticks' => static function (string $m): void {
        $mark = $m;
        echo include __DIR__ . '/every_third.php';
    },
];
