<?php
/*
 * Waits in callbacks of the language, by name: each kind does its work for one request, prints it with the request's marker, and lets the
 * script continue. Those after `ENDS` end it.
 */

return [
    'sorting' => static function (string $m): void {
        $list = Chance::numbers(8);
        usort($list, static function (int $a, int $b) use ($m): int {
            pause();
            $inner = [3, 1, 2];
            usort($inner, static fn (int $x, int $y): int => $y <=> $x);
            $_GET['m'] === $m || print '[foreign]';

            return $a <=> $b ?: $inner[0] - 3;
        });
        $keyed = ["b$m" => 2, "a$m" => 1, "c$m" => 3];
        uksort($keyed, static function (string $a, string $b): int {
            pause();

            return strcmp($b, $a);
        });
        echo implode(',', $list), implode(',', array_keys($keyed));
        $objects = [new Magic("z$m"), new Magic("a$m")];
        sort($objects, SORT_STRING);
        echo $objects[0]->mark, implode(array_unique([new Magic($m), new Magic($m)]));
    },
    'arrays' => static function (string $m): void {
        $mapped = array_map(static function (int $a, string $b) use ($m): string {
            pause();

            return "$a$b$m";
        }, [1, 2], ['x', 'y']);
        $walked = ['k' => ['l' => $m], 'n' => 'o'];
        array_walk_recursive($walked, static function (string &$value, string $key, string $more): void {
            pause();
            $value = "$key$value$more";
        }, $m);
        $sum = array_reduce(Chance::numbers(4), static function (int $sum, int $n): int {
            pause();

            return $sum + $n;
        }, 0);
        $kept = array_filter(Chance::numbers(6), static function (int $n, int $key): bool {
            pause();

            return ($n + $key) % 2 === 0;
        }, ARRAY_FILTER_USE_BOTH);
        $compare = static function (mixed $a, mixed $b): int {
            pause();

            return strcmp((string) $a, (string) $b);
        };
        $same = array_uintersect([$m, 'p', 'q'], ['q', $m], $compare);
        $other = array_diff_ukey([$m => 1, 'p' => 2], ['p' => 0], $compare);
        echo json_encode([$mapped, $walked, $sum, $kept, $same, $other]);
        $walk = [1, 2, 3];
        array_walk($walk, static function (int &$n) use ($m): void {
            pause();
            $n = "$n$m";
        });
        echo implode($walk);
    },
    'references' => static function (string $m): void {
        $list = [1, 2, 3];
        foreach ($list as $key => &$item) {
            pause();
            $item = "$item$m";
            if ($key === 0) {
                $list[] = 'added';
            }
        }
        unset($item);
        [$a, [, $b]] = [new Magic($m), [1, $list]];
        echo implode(',', $list), $a, $b[0], implode(array_map('strval', [new Magic("v$m")]));
    },
    'regular expressions' => static function (string $m): void {
        echo preg_replace_callback('/\d+|[a-z]{2}/', static function (array $found) use ($m): string {
            pause();
            $inner = preg_replace_callback('/./', static function (array $x): string {
                pause();

                return $x[0] . '.';
            }, $found[0]);

            return "($inner)";
        }, $m);
        echo implode(preg_replace_callback_array(['/a/' => static function () use ($m): string {
            pause();

            return $m;
        }, '/b/' => static function () use ($m): string {
            pause();

            return "b$m";
        }], ['a', 'b'], 1) ?? []);
        @preg_match('/(?:\D+|<\d+>)*[!?]/', 'foobar foobar foobar');
        pause();
        echo preg_last_error_msg();
        preg_match('/m/', $m);
    },
    'strings' => static function (string $m): void {
        $a = new Magic($m);
        echo "$a and {$a}", $a . $a, sprintf('%s %10s %s', $a, 'x', $a), implode('-', [$a, $a]), str_replace(['m', 'e'], ['M', new Magic("E$m")], $a);
        echo in_array("<$m>", [$a]) ? 'in' : 'out', strlen($a), ucfirst($a), strcmp($a, $a), number_format(1234.5, 1), md5($a), var_export($a == "<$m>", true);
        echo strtok("$m one two", ' ');
        pause();
        echo strtok(' '), strtok(' ');
    },
    'properties' => static function (string $m): void {
        $a = new Magic($m);
        $a->x = 'set';
        $a->list = $a->x . $a->y;
        echo $a->x, isset($a->x) ? 1 : 0, isset($a->nothing) ? 1 : 0, empty($a->list) ? 'empty' : $a->list, $a->nothing ?? 'default', $a?->x;
        unset($a->x);
        $a->x .= 'more';
        echo $a->x;
        $a['k'] = 'v';
        $a[] = 'w';
        echo $a['k'], isset($a['k']) ? 1 : 0, empty($a['none']) ? 'e' : 'f', count($a), $a['none'] ?? 'd';
        unset($a['k']);
        foreach ($a as $key => $value) {
            echo "$key=$value ";
        }
    },
    'calls' => static function (string $m): void {
        $a = new Magic($m);
        echo $a->doIt($m, 1), Magic::doIt($m), $a($m), implode(array_map($a, [1, 2])), call_user_func([$a, 'other'], 'x'), call_user_func_array('Magic::third', [$m]);
        $bound = Closure::bind(function (string $x): string {
            pause();

            return "$x {$this->mark} " . count($this->values);
        }, $a, Magic::class);
        echo $bound($m), $bound->call(new Magic("called$m"), 'c'), ($a->firstClass(...))('f'), with_default($m), (clone $a)->mark;
        echo (new ReflectionMethod($a, '__invoke'))->invoke($a, 'r');
        $attributed = new #[Magic('attribute')] class () {
        };
        echo (new ReflectionObject($attributed))->getAttributes()[0]->newInstance()->mark, (new ReflectionClass('Magic'))->newInstance($m)->mark;
        echo match (true) {
            (string) $a === 'no' => 1,
            (string) $a === "<$m>" => "matched $m",
        };
    },
    'destructors' => static function (string $m): void {
        $a = new Magic($m, true);
        $a->x = new Magic("inner$m", true);
        unset($a);
        $list = [new Magic("first$m", true), new Magic("second$m", true)];
        $list = null;
        $c = new Sleeper($m);
        $c->self = [$c, new Magic("cycle$m", true)];
        try {
            (static function () use ($m): void {
                $local = new Magic("unwound$m", true);
                throw new Exception("thrown by $m");
            })();
        } catch (Exception $e) {
            echo $e->getMessage();
            $e = null;
        }
        $c->self = null;
    },
    'generators' => static function (string $m): void {
        $inner = static function () use ($m): Generator {
            try {
                for ($i = 0; $i < 3; $i++) {
                    pause();
                    $got = yield "$i$m";
                    echo $got;
                }

                return 'end';
            } finally {
                pause();
                echo "[finally $m]";
            }
        };
        $outer = (static function () use ($inner, $m): Generator {
            $result = yield from $inner();
            pause();
            yield "$result$m";
        })();
        foreach ($outer as $value) {
            pause();
            echo $value;
        }
        $sent = $inner();
        echo $sent->current(), $sent->send("sent$m");
        try {
            $sent->throw(new RuntimeException("into $m"));
        } catch (RuntimeException $e) {
            echo $e->getMessage();
        }
        $left = $inner();
        $left->current();
        unset($left);
        echo implode(iterator_to_array($inner(), false));
    },
    'iterators' => static function (string $m): void {
        foreach (new Steps($m) as $key => $value) {
            pause();
            echo "$key$value";
        }
        echo implode(iterator_to_array(new Steps($m))), iterator_count(new Steps($m)), iterator_apply($it = new Steps($m), static function () use (&$it): bool {
            pause();
            echo $it->current();

            return true;
        });
        echo implode(',', [...new Steps($m)]);
        $odd = new CallbackFilterIterator(new Steps($m, 4), static function (string $value, int $key): bool {
            pause();

            return $key % 2 === 1;
        });
        foreach (new LimitIterator(new CachingIterator($odd), 0, 2) as $value) {
            echo $value;
        }
        $tree = new RecursiveIteratorIterator(new RecursiveArrayIterator([$m, [1, [$m, 2]]]));
        foreach ($tree as $leaf) {
            pause();
            echo $leaf, $tree->getDepth();
        }
    },
    'fibers' => static function (string $m): void {
        $fiber = new Fiber(static function (string $x) use ($m): string {
            pause();
            $y = Fiber::suspend("$x$m");
            pause();
            $inner = new Fiber(static function () use ($m): void {
                pause();
                echo Fiber::suspend("inner$m");
                pause();
            });
            echo $inner->start();
            pause();
            $inner->resume("resumed$m");

            return $y;
        });
        echo $fiber->start('start');
        pause();
        $fiber->resume("y$m");
        echo $fiber->getReturn();
    },
    'exceptions' => static function (string $m): void {
        $inner = static function () use ($m): string {
            try {
                try {
                    pause();
                    throw new LogicException("first $m");
                } finally {
                    pause();
                    throw new DomainException("second $m");
                }
            } catch (DomainException $e) {
                pause();

                return $e->getMessage() . $e->getPrevious()->getMessage();
            } finally {
                pause();
                echo "[finally $m]";
            }
        };
        echo $inner();
    },
    'includes' => static function (string $m): void {
        $mark = $m;
        echo include __DIR__ . '/waits.php', $inside;
        echo include __DIR__ . '/ticks.php';
        file_put_contents("busy://code$m", '<?php pause(); return "wrapped " . __LINE__ . $mark;');
        echo include "busy://code$m";
        unlink("busy://code$m");
        echo eval('pause(); return "evaluated $mark";');
        try {
            eval('this is no code');
        } catch (ParseError $e) {
            pause();
            echo $e->getMessage();
        }
        echo @include __DIR__ . '/not there.php' ? 'there' : 'not there';
    },
    'autoloading' => static function (string $m): void {
        $n = crc32($m) % 40;
        echo constant("Auto$n::NUMBER"), class_exists("None$n") ? 1 : 0, is_a("Auto$n", "Auto$n", true) ? 1 : 0, is_callable(["Auto$n", 'x']) ? 1 : 0, $m;
    },
    'errors' => static function (string $m): void {
        set_error_handler(static function (int $no, string $text) use ($m): bool {
            pause();
            $quiet = @strpos('a', 'b');
            echo "{", $text, " for $m}";

            return true;
        });
        trigger_error("by $m");
        echo $undefined . hex2bin('abc') . [1][5], 5 % 3, (int) '7 apples';
        pause();
        set_error_handler(static function (int $no, string $text) use ($m): never {
            pause();
            throw new ErrorException("$text thrown for $m");
        });
        try {
            echo hex2bin('abc');
        } catch (ErrorException $e) {
            echo $e->getMessage();
        }
        restore_error_handler();
        trigger_error("again by $m", E_USER_WARNING);
        restore_error_handler();
        @trigger_error("silent by $m");
        pause();
        echo error_get_last()['message'];
    },
    'exception handler' => static function (string $m): void {
        set_exception_handler(static function (Throwable $e) use ($m): void {
            pause();
            echo "{{$e->getMessage()} for $m}";
        });
    },
    'shutdown' => static function (string $m): void {
        register_shutdown_function(static function (string ...$more) use ($m): void {
            pause();
            echo "[shutdown $m $more[0]]";
            register_shutdown_function(static function () use ($m): void {
                pause();
                echo "[inner $m ", $_GET['m'], ']';
            });
        }, $m);
    },
    'globals' => static function (string $m): void {
        global $plain;
        $plain[] = $m;
        $GLOBALS['counted'] = ($GLOBALS['counted'] ?? 0) + 1;
        $_SERVER['OWN'] = $_COOKIE['own'] = $m;
        pause();
        echo json_encode($plain), $GLOBALS['counted'], $_SERVER['OWN'], $_COOKIE['own'], $_SERVER['QUERY_STRING'], $_SERVER['REQUEST_METHOD'];
        extract(['taken' => $m]);
        pause();
        echo implode(compact('taken')), json_encode(array_map(static fn (array $f): string => $f['name'] . md5_file($f['tmp_name']), $_FILES));
        $GLOBALS['at end'] = new Magic("global$m", true);
    },
    'ENDS' => null,
    'exit' => static function (string $m): void {
        $local = new Magic("local$m", true);
        try {
            exit("left $m");
        } finally {
            echo 'finally';
        }
    },
    'uncaught' => static function (string $m): void {
        pause();
        throw new Exception("uncaught by $m");
    },
    'exit in a callback' => static function (string $m): void {
        array_map(static function () use ($m): void {
            pause();
            exit("left the callback $m");
        }, [1]);
    },
    'exit in a fiber' => static function (string $m): void {
        (new Fiber(static function () use ($m): void {
            pause();
            exit("left the fiber $m");
        }))->start();
    },
    'exit at the end' => static function (string $m): void {
        register_shutdown_function(static function () use ($m): void {
            pause();
            exit("left at the end $m");
        });
        exit;
    },
    'finished' => static function (string $m): void {
        echo "finished $m";
        fastcgi_finish_request();
        pause();
        echo 'unheard';
    },
];
