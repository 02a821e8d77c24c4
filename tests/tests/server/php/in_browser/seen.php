<?php
file_put_contents(__DIR__ . '/seen', $_GET['text'] . "\n", FILE_APPEND | LOCK_EX);
