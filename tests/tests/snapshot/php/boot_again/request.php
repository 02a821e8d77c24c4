<?php
$show = fn ($b) => strlen($b) . ':' . substr($b, 0, 1) . (strlen($b) - strlen(ltrim($b, substr($b, 0, 1) ?: ' ')));
echo $said, ' ', $_SERVER['REQUEST_METHOD'], ' ', $show(file_get_contents('php://input')), ' ', $show(isset($_FILES['f']) ? file_get_contents($_FILES['f']['tmp_name']) : ''), ' ', $_POST['a'] ?? '-';
